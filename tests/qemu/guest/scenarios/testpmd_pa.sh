# As testpmd, with physical addresses although there is an IOMMU.
iova=pa
eal_memory='--legacy-mem --huge-unlink --no-shconf'
. /scenarios/testpmd.sh
