#include "fpga/wire/shm/process_puller.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/trouble.hpp"

namespace rio::wire::shm {
namespace {

constexpr size_t kPiecesMax = 128;

/// Adds a piece, joined with the last one if it continues that, as is usual.
void add(iovec* all, size_t* count, uint8_t* at, size_t len) {
  if (*count != 0) {
    iovec& last = all[*count - 1];
    if (static_cast<uint8_t*>(last.iov_base) + last.iov_len == at) {
      last.iov_len += len;
      return;
    }
  }
  all[(*count)++] = {at, len};
}

}  // namespace

bool ProcessPuller::works(uint64_t at, uint64_t expected) {
  uint64_t read = ~expected;
  const model::PullPiece piece{reinterpret_cast<uint8_t*>(&read), at, sizeof read};
  const bool works = pid_ > 0 && pull({&piece, 1}) == sizeof read && read == expected;
  other_memory_ = !works && refused_ == 0 && !gone_;
  return works;
}

std::string ProcessPuller::why_not() const {
  const std::string text =
      "long messages are copied twice, since a partner's memory cannot be read: ";
  if (pid_ <= 0) {
    return text + "it is in another pid namespace; give the processes one";
  }
  if (refused_ == -EPERM) {
    return text + "process_vm_readv: " + std::strerror(EPERM) +
           "; set kernel.yama.ptrace_scope to 0, give the processes CAP_SYS_PTRACE, or allow the "
           "call "
           "in the seccomp profile of the container";
  }
  if (refused_ != 0) {
    return text + base::why({"process_vm_readv", refused_});
  }
  return other_memory_ ? text + "process " + std::to_string(pid_) +
                             " has replaced it; open cards after fork() and exec(), in the process "
                             "that uses them"
                       : "";
}

uint64_t ProcessPuller::pull(std::span<const model::PullPiece> pieces) {
  uint64_t pulled = 0;
  while (!pieces.empty()) {
    const auto now = pieces.first(std::min(pieces.size(), kPiecesMax));
    iovec local[kPiecesMax];
    iovec remote[kPiecesMax];
    size_t locals = 0;
    size_t remotes = 0;
    size_t wanted = 0;
    for (const model::PullPiece& piece : now) {
      add(local, &locals, piece.to, piece.len_bytes);
      add(remote, &remotes, reinterpret_cast<uint8_t*>(piece.from), piece.len_bytes);
      wanted += piece.len_bytes;
    }
    const ssize_t got = process_vm_readv(pid_, local, locals, remote, remotes, 0);
    pulled += got > 0 ? static_cast<uint64_t>(got) : 0;
    gone_ = gone_ || (got < 0 && errno == ESRCH);
    // EFAULT or ESRCH mean that this partner is gone, or has unmapped its memory; they say nothing
    // about the next partner.
    if (got < 0 && errno != ESRCH && errno != EFAULT) {
      refused_ = -errno;
      allowed_->store(0, std::memory_order_relaxed);  // repeated messages go through the ring
    }
    if (got != static_cast<ssize_t>(wanted)) {
      break;
    }
    pieces = pieces.subspan(now.size());
  }
  return pulled;
}

}  // namespace rio::wire::shm
