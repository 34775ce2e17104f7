/// @file
/// The part of the kernel's interface to iommufd that VFIO needs, with the numbers of
/// linux/iommufd.h and linux/vfio.h: the headers of Linux before 6.6 lack it, and those of Debian
/// 12 are older. Fields are named as there. Internal to pmd/bus/vfio.
#pragma once

#include <linux/vfio.h>

#include <cstddef>
#include <cstdint>

namespace rio::pmd::vfio::uapi {

/// Ask for an address space.
struct IoasAlloc {
  uint32_t size;
  uint32_t flags;
  uint32_t out_ioas_id;
};
inline constexpr unsigned long kIoasAlloc = _IO(VFIO_TYPE, 0x81);

/// Read the addresses that may be mapped. -EMSGSIZE: there are num_iovas.
struct IoasIovaRanges {
  uint32_t size;
  uint32_t ioas_id;
  uint32_t num_iovas;
  uint32_t reserved;
  uint64_t allowed_iovas;  // address of pairs {first, last}, as vfio_iova_range
  uint64_t out_iova_alignment;
};
inline constexpr unsigned long kIoasIovaRanges = _IO(VFIO_TYPE, 0x84);

struct IoasMap {
  uint32_t size;
  uint32_t flags;
  uint32_t ioas_id;
  uint32_t reserved;
  uint64_t user_va;
  uint64_t length;
  uint64_t iova;
};
inline constexpr unsigned long kIoasMap = _IO(VFIO_TYPE, 0x85);
inline constexpr uint32_t kMapFixedIova = 1;
inline constexpr uint32_t kMapWriteable = 2;
inline constexpr uint32_t kMapReadable = 4;

/// length is what was unmapped, on return.
struct IoasUnmap {
  uint32_t size;
  uint32_t ioas_id;
  uint64_t iova;
  uint64_t length;
};
inline constexpr unsigned long kIoasUnmap = _IO(VFIO_TYPE, 0x86);

/// Give a device of /dev/vfio/devices to an iommufd.
struct BindIommufd {
  uint32_t argsz;
  uint32_t flags;
  int32_t iommufd;
  uint32_t out_devid;
};
inline constexpr unsigned long kBindIommufd = _IO(VFIO_TYPE, VFIO_BASE + 18);

/// Let a device into an address space.
struct AttachIommufdPt {
  uint32_t argsz;
  uint32_t flags;
  uint32_t pt_id;
};
inline constexpr unsigned long kAttachIommufdPt = _IO(VFIO_TYPE, VFIO_BASE + 19);

static_assert(sizeof(IoasAlloc) == 12 && sizeof(IoasIovaRanges) == 32 && sizeof(IoasMap) == 40);
static_assert(sizeof(IoasUnmap) == 24 && sizeof(BindIommufd) == 16 &&
              sizeof(AttachIommufdPt) == 12);
static_assert(offsetof(IoasIovaRanges, allowed_iovas) == 16 && offsetof(IoasMap, user_va) == 16);

}  // namespace rio::pmd::vfio::uapi
