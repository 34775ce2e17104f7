#!/bin/sh
# dpdk-pmdinfo.py reads the plug-in.  pmdinfo.sh PLUGIN
tool=$(command -v dpdk-pmdinfo.py || command -v dpdk-pmdinfo) || { echo "skipped: no dpdk-pmdinfo.py"; exit 77; }
/usr/bin/python3 -c 'import elftools' 2>/dev/null || { echo "skipped: apt-get install python3-pyelftools"; exit 77; }
out=$(/usr/bin/python3 "$tool" "$1") || exit 1
echo "$out"
echo "$out" | grep -q '"raw_rio"' && echo "$out" | grep -q '"raw_rio_pci"' && echo "$out" | grep -q '10ee' 
