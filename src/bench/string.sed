# SPDX-License-Identifier: Apache-2.0
# Turns lines of text into a macro, SCRIPT_TEXT: a C string of these lines.
1i\
#define SCRIPT_TEXT \\
s/[\"]/\\&/g
s/.*/    "&\\n"/
$!s/$/ \\/
