#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""printed.py DOCUMENT: the commands of openssl and afalgctl that a document prints, one a line, so that tests run them as they are.

Indented lines, with or without "$ ", and code in the text or in cells of tables; continued lines are joined. What is only the
name of a subcommand (`openssl enc`) is left out.

printed.py --block LANGUAGE DOCUMENT: the fenced blocks of a language, each ended by a line with a form feed.
"""
import re
import sys

COMMAND = re.compile(r'^(?:[A-Z_]+=\S+ )*(?:openssl|afalgctl) \S+ \S')


def lines_of(path):
    with open(path, encoding='utf-8') as f:
        return f.read().splitlines()


def blocks(path, language):
    inside = False
    for line in lines_of(path):
        if line.startswith('```'):
            if inside:
                print('\f')
            inside = line == '```' + language
        elif inside:
            print(line)


def commands(path):
    for line in lines_of(path):
        indented = line.startswith('    ')
        found = [line.strip().removeprefix('$ ')] if indented else re.findall(r'`([^`]+)`', line)
        for text in found:
            # An option makes it a command, and not the beginning of a sentence.
            if COMMAND.match(text) and ' -' in text:
                print(text)


if sys.argv[1] == '--block':
    blocks(sys.argv[3], sys.argv[2])
else:
    commands(sys.argv[1])
