#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""summary.py --require "KERNEL..." TESTLOG...: one line for all test logs of Meson.

Exit status 1 when a test failed, when a test that ran in a guest was skipped, or when no test at all ran in a guest
kernel that is required.
"""
import json
import sys

GOOD, SKIPPED = ('OK', 'EXPECTEDFAIL'), ('SKIP',)


def main(argv):
    required, logs = argv[2].split(), argv[3:]
    counts = {'passed': 0, 'failed': 0, 'skipped': 0}
    ran = set()
    bad = False
    for log in logs:
        try:
            with open(log, encoding='utf-8') as f:
                tests = [json.loads(line) for line in f]
        except OSError:
            tests = []
        if not tests:
            print(f'no test ran: {log}')
            bad = True
        for test in tests:
            suites, name = test['name'].split(' / ') if ' / ' in test['name'] else ('', test['name'])
            result = test['result']
            kind = 'passed' if result in GOOD else 'skipped' if result in SKIPPED else 'failed'
            counts[kind] += 1
            if kind == 'failed':
                print(f'failed: {name} ({result}), see {log}')
            guest = ' in ' in name
            if kind == 'skipped' and guest:
                print(f'failed: {name} was skipped, but must run')
                bad = True
            if kind == 'passed' and guest:
                ran.add(name.rsplit(' in ', 1)[1])
    for kernel in required:
        if kernel not in ran:
            print(f'failed: nothing ran in the guest kernel {kernel}')
            bad = True
    print(', '.join(f'{counts[kind]} {kind}' for kind in ('passed', 'failed', 'skipped')))
    return 1 if bad or counts['failed'] else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
