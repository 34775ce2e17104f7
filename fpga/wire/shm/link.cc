#include "fpga/wire/shm/link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/peer_process.hpp"
#include "base/unix_socket.hpp"
#include "fpga/wire/member.hpp"

namespace rio::wire::shm {
namespace {

constexpr uint32_t kIdsMax = 31;  // most queue pairs of a card

}  // namespace

bool identify(Link& link, base::Trouble* trouble) {
  ucred peer{};
  if (!base::peer_of(link.socket, &peer)) {
    *trouble = base::failed("getsockopt(SO_PEERCRED)");
    return false;
  }
  if (peer.uid != geteuid()) {
    return false;
  }
  link.pid = peer.pid;
  if (peer.pid <= 0) {
    return true;  // the peer is in another pid namespace: rely on its socket alone
  }
  *trouble = base::watch_process(peer.pid, &link.process);
  if (trouble->rc == -ESRCH) {
    *trouble = {};
    return false;
  }
  return !base::is_shortage(trouble->rc);
}

bool may_be(const Directory& directory, const Link& link, const Greeting& greeting,
            base::Trouble* trouble) {
  const uint32_t first = greeting.first_id;
  if (first == 0 || greeting.ids == 0 || greeting.ids > kIdsMax ||
      first + greeting.ids - 1 < first ||
      ids_meet(first, greeting.ids, directory.first_id(), directory.ids()) ||
      (link.ours && link.wanted - first >= greeting.ids)) {
    return false;
  }
  for (uint32_t i = 0; i < greeting.ids; ++i) {
    base::Fd socket;
    ucred peer{};
    if (link.ours && first + i == link.wanted) {
      continue;
    }
    if (directory.connect(first + i, &socket, trouble) != Directory::Called::kConnected ||
        !base::peer_of(socket, &peer) || peer.pid != link.pid) {
      return false;
    }
  }
  return true;
}

bool send_greeting(const Link& link, const Greeting& greeting, const base::Fd* memory,
                   base::Trouble* trouble) {
  const int fds[] = {memory == nullptr ? -1 : memory->get(), link.joint.bell.get()};
  const int rc = base::send_with_fds(link.socket, std::as_bytes(std::span(&greeting, 1)),
                                     std::span(fds, memory == nullptr ? 0 : 2));
  const bool peers =
      rc == -EPIPE || rc == -ECONNRESET || rc == -EAGAIN;  // the partner is leaving, or is stopped
  if (rc != 0 && !peers) {
    *trouble = {"sendmsg", rc};
  }
  return rc == 0;
}

void hang_up(const base::Fd& socket) {
  if (socket.valid()) {
    shutdown(socket.get(), SHUT_RDWR);
  }
}

}  // namespace rio::wire::shm
