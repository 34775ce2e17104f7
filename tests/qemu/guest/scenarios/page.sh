# The commands of a page of the docs, each in a file of /page (put there by ../../bring_up_test.py),
# one after the other in one shell. Marks enclose the output of each and its exit code.
page_path=$PATH
PATH=/page/bin:$PATH
cd /tmp || exit
dmesg -n 1 # the kernel's messages do not belong to their output
page_code=0 page_step=0
while [ -e /page/step/$page_step ]; do
  echo "RIO-STEP $page_step"
  (exit $page_code) # for echo $?
  . /page/step/$page_step >/tmp/page.out 2>&1
  page_code=$?
  cat /tmp/page.out
  echo
  echo "RIO-CODE $page_step $page_code"
  page_step=$((page_step + 1))
done
PATH=$page_path
[ ! -e /boot/kernel-line ] || echo "RIO-LINE $(cat /boot/kernel-line)"
