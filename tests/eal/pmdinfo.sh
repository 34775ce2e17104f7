#!/bin/sh
# Expects each TEXT in dpdk-pmdinfo.py's output for the plug-in.  pmdinfo.sh PLUGIN TEXT...
tool=$(command -v dpdk-pmdinfo.py || command -v dpdk-pmdinfo) || { echo "skipped: no dpdk-pmdinfo.py"; exit 77; }
/usr/bin/python3 -c 'import elftools' 2>/dev/null || { echo "skipped: apt-get install python3-pyelftools"; exit 77; }
out=$(/usr/bin/python3 "$tool" "$1") || exit 1
echo "$out"
shift
for text in "$@"; do
  echo "$out" | grep -qF "$text" || { echo "no $text"; exit 1; }
done
