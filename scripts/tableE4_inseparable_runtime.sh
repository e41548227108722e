#!/usr/bin/env bash
# Table E.4: run-times on the inseparable toy mixture. Same runs as Table E.3.
. "$(dirname "$0")/lib/paper.sh"
begin "$@"
make_table E.4
finish
