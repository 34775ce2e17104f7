#include "fpga/cardsim/guest_ram.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kHighBase = 4 * kGiB;
// QEMU's machine q35: with 2.75 GiB or more there are 2 GiB low, and the rest from 4 GiB on.
constexpr uint64_t kMostLow = 11 * kGiB / 4;
constexpr uint64_t kLowOfMore = 2 * kGiB;
constexpr uint64_t kPageBytes = 4096;
constexpr auto kTryEvery = std::chrono::milliseconds(10);

}  // namespace

bool GuestRam::refuse(const char* why) {
  if (!told_) {
    complain("ram=%s: %s; give the mem-path of QEMU's memory-backend-file with share=on",
             path_.c_str(), why);
    told_ = true;
  }
  fd_.reset();
  return false;
}

bool GuestRam::map() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_try_) {
    return false;
  }
  next_try_ = now + kTryEvery;
  fd_ = base::Fd(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd_.valid()) {
    return refuse(std::strerror(errno));
  }
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse("no regular file");
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes == 0 || bytes % kPageBytes != 0) {
    return refuse("size is no multiple of 4096 bytes");
  }
  if (const int rc = base::Mapping::of_file(fd_, 0, bytes, &memory_); rc != 0) {
    return refuse(std::strerror(-rc));
  }
  low_bytes_ = bytes < kMostLow ? bytes : kLowOfMore;
  return true;
}

bool GuestRam::find(uint64_t address, Run* out) {
  if (!memory_.valid() && !map()) {
    return false;
  }
  if (address < low_bytes_) {
    *out = {memory_.va() + address, low_bytes_ - address, address};
    return true;
  }
  const uint64_t high = address - kHighBase;
  if (address < kHighBase || high >= memory_.len_bytes() - low_bytes_) {
    return false;
  }
  const uint64_t offset = low_bytes_ + high;
  *out = {memory_.va() + offset, memory_.len_bytes() - offset, offset};
  return true;
}

bool GuestRam::run_of(const uint8_t* va, Run* out) const {
  const auto offset = reinterpret_cast<uintptr_t>(va) - reinterpret_cast<uintptr_t>(memory_.va());
  if (!memory_.valid() || offset >= memory_.len_bytes()) {
    return false;
  }
  *out = {memory_.va() + offset, (offset < low_bytes_ ? low_bytes_ : memory_.len_bytes()) - offset,
          offset};
  return true;
}

const uint64_t* GuestRam::word(uint64_t address) {
  Run run;
  if ((address & 7) != 0 || !find(address, &run) || run.len_bytes < sizeof(uint64_t)) {
    return nullptr;
  }
  return reinterpret_cast<const uint64_t*>(run.va);
}

}  // namespace rio::cardsim
