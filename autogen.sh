#!/bin/sh
# Makes ./configure out of configure.ac. Needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
autoreconf --install --force --warnings=all,no-obsolete
