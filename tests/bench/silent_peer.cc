// Messages of a port to 15 peers that receive, first alone, then beside a 16th that never answers:
//   silent_peer PASS_OVER TURNS
// PASS_OVER is the card's capability (0: a message that waits blocks all later ones). In a turn the
// port offers each peer some messages, and all but the silent one make progress; so what is counted
// does not depend on time, but for the time-outs by which the library gets a blocked ring going.
// Prints one JSON object.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/number.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"

namespace {

using namespace rio::msg;

constexpr uint32_t kLiving = 15;
constexpr uint32_t kBytes = 64;
constexpr uint32_t kOffered = 4;  // messages for each peer in a turn, at most
constexpr uint32_t kMeetTurns = 1'000'000;

[[noreturn]] void give_up(const char* what, int error) {
  std::fprintf(stderr, "error: %s: %s\n", what, std::strerror(-error));
  std::exit(1);
}

struct Node {
  std::unique_ptr<MessagePort> port;
  std::unique_ptr<MessageContext> context;
  Route there;  // from the sender

  Node(uint32_t id, const char* pass_over) {
    PortConfig config;
    config.card = "shm:silent-" + std::to_string(getpid()) + ",id=" + std::to_string(id) +
                  ",pass_over=" + pass_over;
    int rc = MessagePort::open(config, &port);
    rc = rc != 0 ? rc : MessageContext::create(*port, 0, &context);
    if (rc != 0) {
      give_up("port", rc);
    }
  }
  /// @return messages that have arrived.
  uint32_t receive() const {
    uint32_t count = 0;
    port->progress();
    for (; !context->inbox().empty(); ++count) {
      context->drop_oldest();
    }
    return count;
  }
};

class Traffic {
 public:
  explicit Traffic(const char* pass_over) : sender_(1, pass_over), silent_(2, pass_over) {
    for (uint32_t i = 0; i < kLiving; ++i) {
      living_[i] = std::make_unique<Node>(3 + i, pass_over);
      meet(*living_[i]);
    }
    meet(silent_);
  }
  /// @param all whether the silent peer is offered messages, too. @return messages that arrived at
  /// the others.
  uint64_t run(uint32_t turns, bool all) {
    uint64_t arrived = 0;
    for (; turns != 0; --turns) {
      if (all) {
        offer(silent_);
      }
      for (const auto& node : living_) {
        offer(*node);
      }
      sender_.port->progress();
      for (const auto& node : living_) {
        arrived += node->receive();
      }
    }
    return arrived;
  }
  [[nodiscard]] uint64_t restarts() const { return sender_.port->stats().restarts; }

 private:
  /// @return whether a message was sent.
  bool offer(const Node& node) const {
    uint32_t sent = 0;
    while (sent < kOffered && sender_.port->send(node.there, bytes_, kBytes) == 0) {
      ++sent;
    }
    return sent != 0;
  }
  void meet(Node& node) {
    const int rc = sender_.port->route(node.port->dest_id(), 0, 0, Kind::kData, &node.there);
    if (rc != 0) {
      give_up("route", rc);
    }
    uint32_t arrived = 0;
    bool flushed = false;
    for (uint32_t i = 0; i < kMeetTurns && !(arrived != 0 && flushed); ++i) {
      if (arrived == 0) {
        offer(node);
      }
      sender_.port->progress();
      arrived += node.receive();
      for (const auto& other : living_) {  // the sender may still owe the earlier ones something
        static_cast<void>(other == nullptr || other.get() == &node ? 0 : other->receive());
      }
      flushed = sender_.port->flush(0) == 0 && node.port->flush(0) == 0;
    }
    if (arrived == 0 || !flushed) {
      give_up("no session", -ETIMEDOUT);
    }
  }

  uint8_t bytes_[kBytes] = {};
  Node sender_;
  Node silent_;
  std::array<std::unique_ptr<Node>, kLiving> living_;
};

}  // namespace

int main(int argc, char** argv) {
  uint32_t turns = 0;
  if (argc != 3 || !rio::base::read_number(argv[2], 1, UINT32_MAX, &turns)) {
    std::fprintf(stderr, "usage: silent_peer PASS_OVER TURNS\n");
    return 2;
  }
  Traffic traffic(argv[1]);
  traffic.run(turns / 10, false);
  const uint64_t alone = traffic.run(turns, false);
  const uint64_t beside = traffic.run(turns, true);
  std::printf("{\"alone\": %llu, \"beside\": %llu, \"restarts\": %llu}\n",
              static_cast<unsigned long long>(alone), static_cast<unsigned long long>(beside),
              static_cast<unsigned long long>(traffic.restarts()));
  return 0;
}
