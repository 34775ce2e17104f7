// Sends and receives messages in a stream, so that callgrind can count it:
//   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=rio_bench_msg_CALL
//     msg_count CASE MESSAGES BYTES
// CALL is send or recv, which hold calls of the library and nothing else (tag: a receive is posted
// in one, and found done in another); rio_bench_measured holds both sides. Cases are skifch and
// tag. Both sides are in this process, on a fabric of shared memory, so that the emulated cards
// take the way between processes. Receives of a burst are posted, it is sent, it is received.
// Connecting counts, too, so take the difference of two numbers of messages. Prints one JSON
// object.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "lib/skifch/skifch.h"
#include "lib/tag/tagged_context.hpp"

namespace {

constexpr uint32_t kBurst = 32;
constexpr uint32_t kBytesMax = 4072;
constexpr uint32_t kTurnsMax = 100000;
constexpr uint64_t kBits = 0x1234;
const netaddr_t kTo = SkifCh_Addr(2, 0);

[[noreturn]] void give_up(const char* what, int error) {
  std::fprintf(stderr, "error: %s: %s\n", what, std::strerror(error < 0 ? -error : error));
  std::exit(1);
}

/// Both sides of a case; only those of one interface exist.
struct Sides {
  bool tagged = false;
  uint32_t bytes = 0;
  // Plain arrays and pointers, since accessors of other types would count as the library's.
  uint8_t from[kBytesMax] = {};
  uint8_t to[kBytesMax] = {};

  SkifCh* channels[2] = {};

  std::unique_ptr<rio::msg::MessagePort> ports[2];
  std::unique_ptr<rio::tag::TaggedContext> owned[2];
  rio::tag::TaggedContext* endpoints[2] = {};
  rio::tag::SendRequest send;
  std::array<rio::tag::RecvRequest, kBurst> receives;
  rio::tag::RecvRequest* take = nullptr;  // not constant: no code is specialized for it
};

}  // namespace

[[gnu::noinline]] static bool skifch_send(Sides* sides) {
  const iovec piece = {sides->from, sides->bytes};
  return SkifCh_Send(sides->channels[0], kTo, &piece, 1) >= 0;
}
[[gnu::noinline]] static bool skifch_recv(Sides* sides) {
  iovec pieces[SKIFCH_CONT_SIZE];
  int n = 0;
  return SkifCh_Recv(sides->channels[1], pieces, &n) >= 0 &&
         SkifCh_RecvComp(sides->channels[1]) == 0;
}
[[gnu::noinline]] static bool tag_send_later(Sides* sides) {
  sides->endpoints[0]->progress();
  return sides->endpoints[0]->test(sides->send);
}
[[gnu::noinline]] static void progress_sender(Sides* sides) {
  if (sides->tagged) {
    sides->endpoints[0]->progress();
  } else {
    SkifCh_Progress(sides->channels[0]);
  }
}
[[gnu::noinline]] static bool tag_recv_later(Sides* sides) {
  sides->endpoints[1]->progress();
  return sides->endpoints[1]->next_done() != nullptr;
}

// The code that callgrind counts. Not inlined, and with names that are easy to type.
extern "C" {
/// @param again whether this is a tagged message that could not be sent at once. @return whether it
/// was sent.
[[gnu::noinline]] bool rio_bench_msg_send(Sides* sides, bool again) {
  if (!sides->tagged) {
    return skifch_send(sides);
  }
  return again ? tag_send_later(sides)
               : sides->endpoints[0]->send(kTo, kBits, sides->from, sides->bytes, sides->send) == 1;
}
/// @param post a receive to post, or null: take a message. @return whether it was posted, or taken.
[[gnu::noinline]] bool rio_bench_msg_recv(Sides* sides, rio::tag::RecvRequest* post) {
  if (!sides->tagged) {
    return skifch_recv(sides);
  }
  if (post != nullptr) {
    return sides->endpoints[1]->receive({kBits, 0, SkifCh_Addr(1, 0)}, sides->to, sides->bytes,
                                        *post) == 0;
  }
  return sides->endpoints[1]->next_done() != nullptr || tag_recv_later(sides);
}
[[gnu::noinline]] void rio_bench_measured(Sides* sides, uint32_t count) {
  for (uint32_t i = 0; i < count && sides->tagged; ++i) {
    if (!rio_bench_msg_recv(sides, &sides->receives[i])) {
      give_up("receive", EPROTO);
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    // Now and then the sender is out of credit, and has to read new credit first.
    bool sent = false;
    for (uint32_t turn = 0; !sent && turn < kTurnsMax; ++turn) {
      sent = rio_bench_msg_send(sides, turn != 0);
    }
    if (!sent) {
      give_up("send", EAGAIN);
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    // A message that was answered RETRY comes later, and the sender's card has to be looked at.
    bool taken = rio_bench_msg_recv(sides, sides->take);
    for (uint32_t turn = 0; !taken && turn < kTurnsMax; ++turn) {
      progress_sender(sides);
      taken = rio_bench_msg_recv(sides, sides->take);
    }
    if (!taken) {
      give_up("receive", EAGAIN);
    }
  }
}
}

namespace {

void open_tagged(const std::string& fabric, Sides* sides) {
  for (uint32_t i = 0; i < 2; ++i) {
    rio::msg::PortConfig config;
    config.card = fabric + ",id=" + std::to_string(i + 1);
    int rc = rio::msg::MessagePort::open(config, &sides->ports[i]);
    rc = rc != 0 ? rc : rio::tag::TaggedContext::create(*sides->ports[i], 0, {}, &sides->owned[i]);
    if (rc != 0) {
      give_up("open", rc);
    }
    sides->endpoints[i] = sides->owned[i].get();
  }
}

/// Until the first message has arrived, both sides must make progress.
void connect_tagged(Sides* sides) {
  rio::tag::RecvRequest& receive = sides->receives[0];
  int sent = sides->endpoints[0]->send(kTo, 0, nullptr, 0, sides->send);
  int got = sides->endpoints[1]->receive({0, 0, SkifCh_Addr(1, 0)}, nullptr, 0, receive);
  for (uint32_t turn = 0; (sent == 0 || got == 0) && turn < kTurnsMax; ++turn) {
    sides->endpoints[0]->progress();
    sides->endpoints[1]->progress();
    sent = sent == 0 ? static_cast<int>(sides->endpoints[0]->test(sides->send)) : sent;
    got = got == 0 ? static_cast<int>(sides->endpoints[1]->test(receive)) : got;
  }
  // The second message uses the route, which is now cached.
  if (sent <= 0 || got <= 0 || sides->endpoints[0]->send(kTo, 0, nullptr, 0, sides->send) != 1 ||
      sides->endpoints[1]->receive({0, 0, SkifCh_Addr(1, 0)}, nullptr, 0, receive) < 0) {
    give_up("connect", EPROTO);
  }
  for (uint32_t turn = 0; !sides->endpoints[1]->test(receive); ++turn) {
    if (turn == kTurnsMax) {
      give_up("connect", ETIMEDOUT);
    }
    sides->endpoints[0]->progress();
    sides->endpoints[1]->progress();
  }
}

void open_skifch(const std::string& fabric, Sides* sides) {
  for (uint32_t i = 0; i < 2; ++i) {
    sides->channels[i] = SkifCh_Open((fabric + ",id=" + std::to_string(i + 1)).c_str(), 0, nullptr);
    if (sides->channels[i] == nullptr) {
      give_up("SkifCh_Open", errno);
    }
  }
}

void connect_skifch(Sides* sides) {
  const iovec piece = {sides->from, 0};
  while (SkifCh_Send(sides->channels[0], kTo, &piece, 1) < 0) {
    SkifCh_Progress(sides->channels[1]);
  }
  iovec pieces[SKIFCH_CONT_SIZE];
  int n = 0;
  while (SkifCh_Recv(sides->channels[1], pieces, &n) < 0) {
    SkifCh_Progress(sides->channels[0]);
  }
  SkifCh_RecvComp(sides->channels[1]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s skifch|tag MESSAGES BYTES\n", argv[0]);
    return 1;
  }
  const std::string_view name = argv[1];
  const uint64_t count = std::strtoull(argv[2], nullptr, 0);
  const uint64_t bytes = std::strtoull(argv[3], nullptr, 0);
  if ((name != "skifch" && name != "tag") || bytes > kBytesMax) {
    std::fprintf(stderr, "error: no case '%s' of %s bytes; at most %u\n", argv[1], argv[3],
                 kBytesMax);
    return 1;
  }
  const auto sides = std::make_unique<Sides>();
  sides->tagged = name == "tag";
  sides->bytes = static_cast<uint32_t>(bytes);
  const std::string fabric = "shm:count-" + std::to_string(getpid());
  (sides->tagged ? open_tagged : open_skifch)(fabric, sides.get());
  (sides->tagged ? connect_tagged : connect_skifch)(sides.get());
  for (uint64_t left = count; left != 0;) {
    const auto burst = static_cast<uint32_t>(std::min<uint64_t>(left, kBurst));
    rio_bench_measured(sides.get(), burst);
    left -= burst;
  }
  std::printf("{\"case\": \"%s\", \"messages\": %llu, \"bytes\": %llu}\n", argv[1],
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(bytes));
  return 0;
}
