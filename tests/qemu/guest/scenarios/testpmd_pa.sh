# Like testpmd, with physical addresses although there is an IOMMU.
iova=pa
eal_memory='--legacy-mem -m 64 --huge-unlink --no-shconf'
. /scenarios/testpmd.sh
