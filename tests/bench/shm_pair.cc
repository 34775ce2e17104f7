// Two processes on a wire between processes, each pinned to a core of its own: half a round trip
// of ping-pong, or messages a second of a stream.
//
//   shm_pair pingpong|stream [BYTES [SECONDS [OPTIONS]]]
//
// OPTIONS are added to the names of both cards, such as pull=0.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/bench/pin.hpp"

namespace rio::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kBurst = 32;
constexpr uint32_t kBuffers = 1024;
constexpr uint8_t kStop = 0xFF;  // first byte of the last message

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "shm_pair: %s\n", what);
  std::exit(1);
}

std::unique_ptr<Endpoint> open_member(const std::string& name) {
  EndpointConfig config;
  config.message_buffers = kBuffers;
  std::unique_ptr<Endpoint> made;
  if (Endpoint::open(name, config, &made) != 0) {
    die("no card");
  }
  return made;
}

void post_all(Endpoint& endpoint) {
  uint32_t index[kBurst];
  for (uint32_t left = kBuffers / 2; left > 0;) {
    const uint32_t got = endpoint.buffers()->get(index, std::min(kBurst, left));
    for (uint32_t i = 0; i < got; ++i) {
      const pmd::RxBuffer buffer{endpoint.buffers()->iova(index[i]), index[i]};
      if (endpoint.shared().post(&buffer, 1) != 1) {
        return;  // the ring is full
      }
    }
    left -= got;
  }
}

pmd::TxMessage message_to(Endpoint& endpoint, uint32_t dest, uint32_t bytes, uint32_t index) {
  pmd::TxMessage message{};
  message.dest_id = dest;
  message.length_bytes = static_cast<uint16_t>(bytes);
  if (bytes <= endpoint.caps().inline_bytes) {
    message.flags = pmd::TxFlags::kInline;
    message.data = endpoint.buffers()->va(index);
  } else {
    message.iova = endpoint.buffers()->iova(index);
  }
  return message;
}

void reap(Endpoint& endpoint, uint64_t* done) {
  pmd::TxDone all[kBurst];
  const uint16_t n = endpoint.tx().reap(all, kBurst);
  for (uint16_t i = 0; i < n; ++i) {
    if (all[i].status != pmd::Status::kOk) {
      die(pmd::name(all[i].status));
    }
  }
  *done += n;
}

/// Sends until the other process exists and takes a message.
void meet(Endpoint& endpoint, const pmd::TxMessage& message) {
  pmd::TxDone done{};
  do {
    while (endpoint.tx().burst(&message, 1) == 0) {
    }
    while (endpoint.tx().reap(&done, 1) == 0) {
    }
  } while (done.status != pmd::Status::kOk);
}

/// Receives messages and gives their buffers back. @param last set if the stop was among them.
/// @return their number.
uint32_t receive(Endpoint& endpoint, bool* last) {
  pmd::RxMessage got[kBurst];
  pmd::RxBuffer back[kBurst];
  const uint16_t n = endpoint.shared().burst(got, kBurst);
  for (uint16_t i = 0; i < n; ++i) {
    const auto index = static_cast<uint32_t>(got[i].cookie);
    *last = *last || endpoint.buffers()->va(index)[0] == kStop;
    back[i] = {endpoint.buffers()->iova(index), index};
  }
  if (n != 0 && endpoint.shared().post(back, n) != n) {
    die("buffers not taken back");
  }
  return n;
}

void send(Endpoint& endpoint, const pmd::TxMessage& message) {
  while (endpoint.tx().burst(&message, 1) == 0) {
    uint64_t ignored = 0;
    reap(endpoint, &ignored);
  }
}

/// Answers each message until the stop comes.
void echo(Endpoint& endpoint, uint32_t dest, uint32_t bytes, bool answer) {
  uint32_t index = 0;
  if (endpoint.buffers()->get(&index, 1) != 1) {
    die("no buffer");
  }
  const pmd::TxMessage message = message_to(endpoint, dest, bytes, index);
  uint64_t done = 0;
  uint64_t turns = 0;
  for (bool last = false; !last;) {
    const uint32_t n = receive(endpoint, &last);
    for (uint32_t i = 0; answer && i < n; ++i) {
      send(endpoint, message);
    }
    if (++turns % 64 == 0) {
      reap(endpoint, &done);
    }
  }
}

void pingpong(Endpoint& endpoint, const pmd::TxMessage& message, double seconds) {
  std::vector<double> ns;
  bool last = false;
  uint64_t done = 0;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < until) {
    constexpr int kRounds = 1000;
    const auto begin = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      send(endpoint, message);
      while (receive(endpoint, &last) == 0) {
      }
      if (i % 64 == 0) {
        reap(endpoint, &done);
      }
    }
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kRounds /
                 2);
  }
  std::sort(ns.begin(), ns.end());
  std::printf("{\"half_round_trip_ns\": {\"p10\": %.0f, \"p50\": %.0f, \"p90\": %.0f}}\n",
              ns[ns.size() / 10], ns[ns.size() / 2], ns[ns.size() * 9 / 10]);
}

void stream(Endpoint& endpoint, const pmd::TxMessage& message, double seconds) {
  // All mailboxes in turn, since there are four letters for each.
  const uint32_t mailboxes =
      message.length_bytes > regs::kSegmentBytesMax ? regs::kMultiMailboxes : regs::kMailboxes;
  std::vector<pmd::TxMessage> all(mailboxes, message);
  for (uint32_t i = 0; i < all.size(); ++i) {
    all[i].mbox = static_cast<uint8_t>(i);
  }
  uint32_t next = 0;
  uint64_t done = 0;
  uint64_t posted = 0;
  const auto begin = Clock::now();
  const auto until = begin + std::chrono::duration<double>(seconds);
  while (Clock::now() < until) {
    for (int i = 0; i < 100; ++i) {
      const uint32_t n = std::min<uint32_t>(kBurst, mailboxes - next);
      const uint16_t taken = endpoint.tx().burst(&all[next], static_cast<uint16_t>(n));
      next = (next + taken) % mailboxes;
      posted += taken;
      reap(endpoint, &done);
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  const double rate = static_cast<double>(done) / took / 1e6;
  while (done != posted) {
    reap(endpoint, &done);
  }
  std::printf("{\"million_messages_per_s\": %.2f}\n", rate);
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  using namespace rio::bench;
  const std::string mode = argc > 1 ? argv[1] : "";
  const uint32_t bytes = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 8;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 1;
  if ((mode != "pingpong" && mode != "stream") || bytes < 1 || bytes > 4096) {
    die("pingpong|stream [BYTES 1 to 4096 [SECONDS [OPTIONS]]]");
  }
  const std::string options = argc > 4 ? std::string(",") + argv[4] : "";
  const std::string fabric = "shm:pair-" + std::to_string(getpid()) + options;
  const pid_t child = fork();
  pin(child == 0 ? 1 : 0);
  auto endpoint = open_member(fabric + (child == 0 ? ",id=2" : ",id=1"));
  post_all(*endpoint);
  if (child == 0) {
    echo(*endpoint, 1, bytes, mode == "pingpong");
    return 0;
  }
  uint32_t index = 0;
  if (endpoint->buffers()->get(&index, 1) != 1) {
    die("no buffer");
  }
  rio::pmd::TxMessage message = message_to(*endpoint, 2, bytes, index);
  meet(*endpoint, message);
  bool last = false;
  while (mode == "pingpong" && receive(*endpoint, &last) == 0) {
  }
  (mode == "pingpong" ? pingpong : stream)(*endpoint, message, seconds);
  endpoint->buffers()->va(index)[0] = kStop;
  send(*endpoint, message);
  uint64_t done = 0;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    reap(*endpoint, &done);
  }
  return status;
}
