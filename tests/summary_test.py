#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the summary makes of tests that did not run: nothing that must run may be missing without a word."""
import json
import os
import subprocess
import sys
import tempfile

SUMMARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'summary.py')
UNIT, SOFT = 'afalgprov:unit / cipher', 'afalgprov:apps / without AF_ALG'
UML = 'afalgprov:kernel+uml / proof in uml'

# Required kernels, the log (None: there is none), exit status, what is said.
CASES = [
    ('', [(UNIT, 'OK'), (SOFT, 'SKIP')], 0, '1 passed, 0 failed, 1 skipped'),
    ('', [(UNIT, 'FAIL')], 1, 'failed: cipher (FAIL)'),
    ('', [(UNIT, 'TIMEOUT')], 1, '0 passed, 1 failed, 0 skipped'),
    ('', [], 1, 'no test ran'),
    ('', None, 1, 'no test ran'),
    ('uml', [(UNIT, 'OK'), (UML, 'OK')], 0, '2 passed, 0 failed, 0 skipped'),
    ('uml', [(UNIT, 'OK')], 1, 'failed: nothing ran in the guest kernel uml'),
    ('uml', [(UNIT, 'OK'), (UML, 'SKIP')], 1, 'failed: proof in uml was skipped, but must run'),
    ('uml 6.1', [(UML, 'OK')], 1, 'failed: nothing ran in the guest kernel 6.1'),
]

with tempfile.TemporaryDirectory() as directory:
    for required, tests, status, said in CASES:
        log = os.path.join(directory, 'none' if tests is None else 'log')
        with open(os.path.join(directory, 'log'), 'w', encoding='utf-8') as f:
            f.writelines(json.dumps({'name': n, 'result': r}) + '\n' for n, r in tests or [])
        run = subprocess.run([sys.executable, SUMMARY, '--require', required, log], stdout=subprocess.PIPE, text=True,
                             check=False)
        if run.returncode != status or said not in run.stdout:
            sys.exit(f'FAILED: {required!r} {tests}: {run.returncode} {run.stdout!r}, not {status} {said!r}')
print('ok')
