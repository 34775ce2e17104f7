# Two DPDK processes on one card, each polling its own queue pair. A third one finds the queue pair
# taken; when its owner is killed, a fourth one takes it over.

# worker NAME QP TYPE: its input is the fifo /tmp/NAME.in, its output /tmp/NAME.out, its pid
# $worker. Waits for its first output.
worker() {
  mkfifo "/tmp/$1.in"
  : >"/tmp/$1.out"
  pci-worker "$card0" "$2" -l 0 --no-telemetry --log-level=4 --file-prefix=two --iova-mode=va \
    --proc-type="$3" -a "$eal_card0" <>"/tmp/$1.in" >"/tmp/$1.out" 2>&1 &
  worker=$!
  until_line $worker '^[a-z]' "/tmp/$1.out"
}

# moves NAME: passes if this worker's messages continue without errors.
moves() {
  first='' last=''
  tries=0
  while [ $tries -lt 100 ]; do
    echo count >"/tmp/$1.in"
    sleep 0.2
    last=$(sed -n 's/^count \([0-9]*\) 0$/\1/p' "/tmp/$1.out" | tail -n 1)
    first=${first:-$last}
    [ "${last:-0}" -le "${first:-0}" ] || break
    tries=$((tries + 1))
  done
  count "$1-moves" yes "$([ "${last:-0}" -gt "${first:-0}" ] && echo yes)"
}

# said NAME WHAT: passes if WHAT is the worker's last line.
said() { count "$1-$2" "$2" "$(tail -n 1 "/tmp/$1.out")"; }

worker primary 0 primary
primary=$worker
said primary claimed
worker secondary 1 secondary
secondary=$worker
said secondary claimed
moves primary
moves secondary

worker late 1 secondary
wait $worker
said late busy

kill -9 $secondary
worker heir 1 secondary
heir=$worker
said heir claimed
moves heir
moves primary

for name in heir primary; do
  echo stop >"/tmp/$name.in"
  eval "wait \$$name"
  count $name-stopped 'stopped 0' "$(tail -n 1 /tmp/$name.out)"
done
