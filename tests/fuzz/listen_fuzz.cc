// A client of rio-cardsim that sends any bytes and any descriptors: the server answers or hangs up,
// and the card accesses only memory that the client has shared.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unix_socket.hpp"
#include "fpga/cardsim/attachment.hpp"
#include "fpga/cardsim/listen_protocol.hpp"

namespace base = rio::base;
using namespace rio::cardsim;

namespace {

constexpr uint64_t kMemoryBytes = 0x4000;

[[nodiscard]] base::Fd memfd_of(int seals) {
  base::Fd fd(memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC));
  if (!fd.valid() || ftruncate(fd.get(), kMemoryBytes) != 0 ||
      (seals != 0 && fcntl(fd.get(), F_ADD_SEALS, seals) != 0)) {
    std::abort();
  }
  return fd;
}

/// Touches each window that the card has.
void touch(Attachment& listen, uint64_t iova) {
  rio::model::HostWindow window;
  if (!listen.memory().find(iova, &window)) {
    return;
  }
  if (!window.holds(iova, 1) || window.len_bytes > kMemoryBytes) {
    std::abort();
  }
  window.va[0] = 1;
  window.va[window.len_bytes - 1] = 1;
}

}  // namespace

// Input: messages of a byte (which descriptors), a byte (length less one) and so many bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool kQuiet = (stderr = std::fopen("/dev/null", "we")) != nullptr;  // error messages
  static_cast<void>(kQuiet);
  static const std::string kPath = "/tmp/rio-listen-fuzz." + std::to_string(getpid());
  static const base::Fd kSealed = memfd_of(F_SEAL_SHRINK);
  static const base::Fd kOpen = memfd_of(0);
  CardSpec spec;
  spec.name = kPath;
  std::unique_ptr<Attachment> attachment;
  base::Fd client;
  if (attach(rio::name::Listen{kPath}, spec, &attachment) != 0 ||
      base::connect_to(kPath, SOCK_SEQPACKET, &client) != 0) {
    std::abort();
  }
  Attachment& listen = *attachment;
  listen.serve();
  const protocol::Request hello;
  if (size > 0 && (data[0] & 0x80) == 0 &&
      base::send_with_fds(client, std::as_bytes(std::span(&hello, 1)), {}) != 0) {
    std::abort();
  }
  while (size >= 2 && listen.peer() != Attachment::Peer::kGone) {
    const size_t len = std::min<size_t>(data[1] + 1u, size - 2);
    std::vector<int> fds;
    for (uint32_t i = 0; i < (data[0] & 3u); ++i) {
      fds.push_back((data[0] & 4) != 0 ? kOpen.get() : kSealed.get());
    }
    protocol::Request request;
    std::byte bytes[256];
    std::memcpy(bytes, data + 2, len);
    if ((data[0] & 8) == 0 && len >= 25) {  // a valid beginning, so that the rest is parsed
      request.verb = (data[2] & 1) != 0 ? protocol::Verb::kMap : protocol::Verb::kUnmap;
      std::memcpy(&request.iova, data + 3, 24);
      if ((data[2] & 2) != 0) {  // and multiples of pages
        request.iova &= ~0xFFFull;
        request.offset &= 0x3000;
        request.len_bytes &= 0x7000;
      }
      std::memcpy(bytes, &request, sizeof request);
    }
    static_cast<void>(
        base::send_with_fds(client, std::span(bytes, (data[0] & 8) == 0 ? 32 : len), fds));
    listen.serve();
    touch(listen, request.iova);
    protocol::Reply reply;
    std::vector<base::Fd> got;
    while (base::receive_with_fds(client, std::as_writable_bytes(std::span(&reply, 1)), &got) > 0) {
    }
    data += 2 + len;
    size -= 2 + len;
  }
  client.reset();
  listen.serve();
  if (listen.renew() != 0) {
    std::abort();
  }
  return 0;
}
