#include "fpga/sim/shm/process_puller.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace rio::sim::shm {
namespace {

constexpr size_t kPiecesMax = 128;

/// Where one piece ends another begins, mostly.
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

bool ProcessPuller::works(uint64_t at, uint64_t expected, bool* forbidden) {
  uint64_t read = ~expected;
  const model::PullPiece piece{reinterpret_cast<uint8_t*>(&read), at, sizeof read};
  errno = pid_ > 0 ? 0 : EPERM;  // none: in another pid namespace
  const bool works = pid_ > 0 && pull({&piece, 1}) == sizeof read && read == expected;
  *forbidden = !works && (errno == EPERM || errno == ENOSYS);
  return works;
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
    if (got < 0 && errno == EPERM) {
      allowed_->store(0, std::memory_order_relaxed);  // what is sent again goes through the ring
    }
    if (got != static_cast<ssize_t>(wanted)) {
      break;
    }
    pieces = pieces.subspan(now.size());
  }
  return pulled;
}

}  // namespace rio::sim::shm
