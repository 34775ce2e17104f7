# shellcheck shell=bash disable=SC2034,SC2154
# The two ends of scripts/demo-ip: namespaces, TAP devices, testpmd processes. Source after common.sh.
# Needs root, ip_name, ip_memory (an array, EAL's), seconds and quiet.
#
#   ip_prepare        namespaces NAME-a, NAME-b, NAME-c, and the folder ip_work
#   ip_start FAULTS   two testpmd processes with a card each, anew; FAULTS as the cards' argument, or none
#   ip_in SIDE COMMAND...   runs a command on side a, b or c
#   ip_alive          whether both processes run
#   ip_reset SIDE     resets the card of a side while it is in use
#   ip_trouble        what the processes said last
#   ip_usage          how to use what runs
#   ip_clean          removes everything
#
# a  rio0 10.77.0.1/24 fd77::1/64     card 0x100
# b  rio0 10.77.0.2/24 fd77::2/64     card 0x200; routes to c by an interface with a smaller MTU
# c  far  10.78.0.2/24 fd78::2/64     behind b

ip_small_mtu=1300
ip_work='' # a folder for keys, files, logs

# The other end's address holds its card's destID: 00:01:00:01 and its two bytes.
declare -A ip_destid=([a]=0x100 [b]=0x200) ip_mac=([a]=00:01:00:01:01:00 [b]=00:01:00:01:02:00)
declare -A ip_host=([a]=1 [b]=2) ip_pid=([a]='' [b]='')

ip_in() {
  local side=$1
  shift
  ip netns exec "$ip_name-$side" "$@"
}

# ip_wait WHAT COMMAND...: until the command succeeds; at most a minute of trying.
ip_wait() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { ip_trouble >&2; die "$what did not come" "see the lines above"; }
    sleep 0.2
  done
}

ip_prepare() {
  local side
  for side in a b c; do
    [ ! -e "/run/netns/$ip_name-$side" ] ||
      die "there is a namespace $ip_name-$side already" "end the other $self, or --name ANOTHER, or ip netns del $ip_name-$side"
  done
  ip_work=$(mktemp -d /tmp/riopmd-ip.XXXXXX)
  for side in a b c; do
    ip netns add "$ip_name-$side"
    ip -n "$ip_name-$side" link set lo up
  done
  ip -n "$ip_name-b" link add far mtu $ip_small_mtu type veth peer name far mtu $ip_small_mtu netns "$ip_name-c"
  ip -n "$ip_name-b" address add 10.78.0.1/24 dev far
  ip -n "$ip_name-b" address add fd78::1/64 dev far nodad
  ip -n "$ip_name-c" address add 10.78.0.2/24 dev far
  ip -n "$ip_name-c" address add fd78::2/64 dev far nodad
  for side in b c; do ip -n "$ip_name-$side" link set far up; done
  ip -n "$ip_name-c" route add default via 10.78.0.1
  ip -n "$ip_name-c" -6 route add default via fd78::1
  ip_in b sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
}

# ip_testpmd SIDE FAULTS: stock testpmd forwards all frames between a TAP device and a card.
ip_testpmd() {
  local side=$1 card="net_rio0,wire=shm:$ip_name$$,destid=${ip_destid[$1]}" cpus
  [ "$2" = none ] || card+=",faults=$2"
  cpus=$(taskset -pc $$ | sed 's/.*: //')
  LD_LIBRARY_PATH=$build/pmd/net ip netns exec "$ip_name-$side" dpdk-testpmd -d librte_net_rio.so --no-pci \
    --iova-mode=va --file-prefix "riopmd-ip-$ip_name-$side" --lcores "0@($cpus),1@($cpus)" "${ip_memory[@]}" \
    --vdev "net_tap0,iface=rio0,mac=${ip_mac[$side]}" --vdev "$card" \
    -- --total-num-mbufs=8192 --forward-mode=io --stats-period=3600 \
    >"$ip_work/testpmd-$side.log" 2>&1 </dev/null &
  ip_pid[$side]=$!
}

ip_stop() {
  local side
  for side in a b; do
    [ -n "${ip_pid[$side]}" ] || continue
    kill -TERM "${ip_pid[$side]}" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "${ip_pid[$side]}" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "${ip_pid[$side]}" 2>/dev/null || true
    wait "${ip_pid[$side]}" 2>/dev/null || true
    ip_pid[$side]=''
    rm -rf "/var/run/dpdk/riopmd-ip-$ip_name-$side"
  done
}

ip_start() {
  local side
  ip_stop
  for side in a b; do ip_testpmd $side "$1"; done
  for side in a b; do
    ip_wait "the TAP device of $ip_name-$side" ip -n "$ip_name-$side" link show rio0
    ip_wait "the TAP device's state" ip -n "$ip_name-$side" link set rio0 up
    ip -n "$ip_name-$side" address replace "10.77.0.${ip_host[$side]}/24" dev rio0
    ip -n "$ip_name-$side" address replace "fd77::${ip_host[$side]}/64" dev rio0 nodad
  done
  ip -n "$ip_name-a" route replace 10.78.0.0/24 via 10.77.0.2
  ip -n "$ip_name-a" -6 route replace fd78::/64 via fd77::2
  ip_wait "an answer from $ip_name-b" ip_in a ping -c 1 -W 1 10.77.0.2
}

ip_alive() { kill -0 "${ip_pid[a]}" 2>/dev/null && kill -0 "${ip_pid[b]}" 2>/dev/null; }

# By telemetry of the process, whose port 0 is the TAP device and port 1 the card.
ip_reset() {
  printf '/net_rio/reset,1\n' | timeout 30 dpdk-telemetry.py -f "riopmd-ip-$ip_name-$1" >"$ip_work/reset.log" 2>&1 &&
    grep -q '"done"' "$ip_work/reset.log"
}

ip_trouble() {
  local log
  for log in "$ip_work"/*.log; do
    [ -s "$log" ] || continue
    printf '%s:\n' "$(basename "$log")"
    tail -n 8 "$log" | sed 's/^/    /'
  done
}

ip_usage() {
  say ends "$ip_name-a 10.77.0.1 fd77::1, $ip_name-b 10.77.0.2 fd77::2, $ip_name-c behind it 10.78.0.2 fd78::2"
  say try "sudo ip netns exec $ip_name-a ping 10.77.0.2"
  say try "sudo ip netns exec $ip_name-b iperf3 -s, and sudo ip netns exec $ip_name-a iperf3 -c 10.77.0.2"
  say try "echo /net_rio/reset,1 | sudo dpdk-telemetry.py -f riopmd-ip-$ip_name-a"
}

ip_clean() {
  local side pids
  trap '' INT TERM
  [ -n "$ip_work" ] || return 0
  ip_stop
  for side in a b c; do
    pids=$(ip netns pids "$ip_name-$side" 2>/dev/null || true)
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null || true
    ip netns del "$ip_name-$side" 2>/dev/null || true
  done
  rm -rf "$ip_work"
}
