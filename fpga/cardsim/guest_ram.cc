#include "fpga/cardsim/guest_ram.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kHighBase = 4 * kGiB;
// QEMU's machine q35: a guest with 2.75 GiB or more has 2 GiB low, and the rest from 4 GiB on.
constexpr uint64_t kMostLow = 11 * kGiB / 4;
constexpr uint64_t kLowOfMore = 2 * kGiB;
constexpr uint64_t kPageBytes = 4096;
constexpr auto kTryEvery = std::chrono::milliseconds(10);

}  // namespace

GuestRam::GuestRam(std::string path) : path_(std::move(path)) {}

GuestRam::~GuestRam() {
  if (va_ != nullptr) {
    munmap(va_, bytes_);
  }
  if (fd_ >= 0) {
    close(fd_);
  }
}

bool GuestRam::refuse(const char* why) {
  if (!told_) {
    complain("ram=%s: %s; give the mem-path of QEMU's memory-backend-file with share=on",
             path_.c_str(), why);
    told_ = true;
  }
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
  return false;
}

bool GuestRam::map() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_try_) {
    return false;
  }
  next_try_ = now + kTryEvery;
  fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    return refuse(std::strerror(errno));
  }
  struct stat info {};
  if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    return refuse("not a regular file");
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes == 0 || bytes % kPageBytes != 0) {
    return refuse("size is not a multiple of 4096 bytes");
  }
  void* const va = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (va == MAP_FAILED) {
    return refuse(std::strerror(errno));
  }
  va_ = static_cast<uint8_t*>(va);
  bytes_ = bytes;
  low_bytes_ = bytes < kMostLow ? bytes : kLowOfMore;
  return true;
}

bool GuestRam::find(uint64_t address, Run* out) {
  if (va_ == nullptr && !map()) {
    return false;
  }
  if (address < low_bytes_) {
    *out = {va_ + address, low_bytes_ - address, address};
    return true;
  }
  const uint64_t high = address - kHighBase;
  if (address < kHighBase || high >= bytes_ - low_bytes_) {
    return false;
  }
  const uint64_t offset = low_bytes_ + high;
  *out = {va_ + offset, bytes_ - offset, offset};
  return true;
}

bool GuestRam::run_of(const uint8_t* va, Run* out) const {
  const auto offset = reinterpret_cast<uintptr_t>(va) - reinterpret_cast<uintptr_t>(va_);
  if (va_ == nullptr || offset >= bytes_) {
    return false;
  }
  *out = {va_ + offset, (offset < low_bytes_ ? low_bytes_ : bytes_) - offset, offset};
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
