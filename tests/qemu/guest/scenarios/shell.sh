# A prompt in the guest, for ../by_hand.py. Ends with `exit`.
echo "cards: $card0$([ ! -e "/sys/bus/pci/devices/$card1" ] || echo " $card1")"
echo "try: bind $card0 vfio-pci (or uio_pci_generic), then pci-guest messages $card0"
# The functions of lib.sh are there, too.
ENV=/scenarios/lib.sh setsid cttyhack sh -i
