# SPDX-License-Identifier: Apache-2.0
# Text as string literals of C, a line each.
s/["\\]/\\&/g
s/.*/"&\\n"/
