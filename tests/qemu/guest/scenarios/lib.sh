# Shared by the scenarios; sourced by /init, in busybox's sh.

card0=0000:00:04.0
card1=0000:00:05.0
# As EAL takes them: it leaves an ivshmem device alone unless it is told that it is a card.
eal_card0=$card0,ivshmem=1
eal_card1=$card1,ivshmem=1

# bind ADDRESS DRIVER: as in docs/guide/raw_rio.md.
bind() {
  [ ! -e "/sys/bus/pci/devices/$1/driver" ] || echo "$1" >"/sys/bus/pci/devices/$1/driver/unbind"
  echo "$2" >"/sys/bus/pci/devices/$1/driver_override"
  echo "$1" >/sys/bus/pci/drivers_probe
  [ "$(basename "$(readlink "/sys/bus/pci/devices/$1/driver")")" = "$2" ] || echo "RIO-FAIL bind $1 to $2"
}

# check NAME SECONDS COMMAND...: passes if the command ends within the time with exit code 0.
check() {
  check_name=$1 check_limit=$2
  shift 2
  echo "---- $check_name: $*"
  check_code=0
  timeout -s KILL "$check_limit" "$@" || check_code=$?
  if [ $check_code -eq 0 ]; then
    echo "RIO-PASS $check_name"
  else
    echo "RIO-FAIL $check_name exit code $check_code; 137 means that it had not ended after $check_limit s"
  fi
}

# refused NAME PATTERN COMMAND...: passes if the command ends with an error that matches PATTERN.
refused() {
  refused_name=$1 refused_pattern=$2
  shift 2
  echo "---- $refused_name: $*"
  refused_code=0
  timeout -s KILL 60 "$@" >/tmp/refused.out 2>&1 || refused_code=$?
  cat /tmp/refused.out
  if [ $refused_code -eq 0 ] || [ $refused_code -eq 137 ]; then
    echo "RIO-FAIL $refused_name was not refused, exit code $refused_code"
  elif grep -q "$refused_pattern" /tmp/refused.out; then
    echo "RIO-PASS $refused_name"
  else
    echo "RIO-FAIL $refused_name does not say: $refused_pattern"
  fi
}

# count NAME WANTED SEEN: passes if they are equal.
count() {
  if [ "$2" = "$3" ]; then
    echo "RIO-PASS $1"
  else
    echo "RIO-FAIL $1 wanted $2, seen $3"
  fi
}

# until_line PID PATTERN FILE: waits until the program has written such a line, or has ended.
until_line() {
  while kill -0 "$1" && ! grep -q "$2" "$3"; do
    sleep 0.2
  done
}

eal_options='-l 0 --no-telemetry --log-level=4'

# testpmd_hit WHAT: has the host do WHAT to a card that hears itself, once rio-testpmd's messages
# flow. Its output is in /tmp/hit.out, its exit code in $testpmd_code.
testpmd_hit() {
  # shellcheck disable=SC2086
  timeout -s KILL 120 rio-testpmd $eal_options $eal_memory --iova-mode="$iova" -a "$eal_card0,destid=0x100" \
    -- --stats-period 1 --peers 0x100 --verify --mode io --seconds 100 >/tmp/hit.out 2>&1 &
  testpmd_pid=$!
  until_line $testpmd_pid 'received [1-9]' /tmp/hit.out
  echo "RIO-HOST $1"
  testpmd_code=0
  wait $testpmd_pid || testpmd_code=$?
  grep -v received /tmp/hit.out
}
