# SPDX-License-Identifier: Apache-2.0
# Turns lines of text into lines of a C string.
s/[\"]/\\&/g
s/.*/"&\\n"/
