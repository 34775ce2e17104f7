// Two processes on a wire between processes, each pinned to a core of its own: bytes a second of
// large data, with some transfers always under way.
//
//   msg_bandwidth [BYTES [COUNT [AHEAD [OPTIONS]]]]
//
// OPTIONS are added to the names of both cards, such as pull=0.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "lib/msg/message_context.hpp"
#include "tests/bench/pin.hpp"

namespace rio::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t kContext = 1;
constexpr size_t kPage = 4096;

[[noreturn]] void die(const char* what, int error) {
  std::fprintf(stderr, "msg_bandwidth: %s: %d\n", what, error);
  std::_Exit(1);
}

class Side {
 public:
  Side(const std::string& card, uint32_t peer, uint64_t bytes, uint32_t ahead)
      : bytes_(bytes), memory_((bytes + kPage) * ahead + kPage, 1) {
    msg::PortConfig config;
    config.card = card;
    if (const int rc = msg::MessagePort::open(config, &port_); rc != 0) {
      die(card.c_str(), rc);
    }
    int rc = msg::MessageContext::create(*port_, kContext, &context_);
    rc = rc != 0 ? rc : context_->accept_large();
    rc = rc != 0 ? rc : port_->route(peer, kContext, kContext, msg::Kind::kData, &route_);
    if (rc != 0) {
      die("context", rc);
    }
  }

  void send(uint32_t count, uint32_t ahead) {
    std::vector<msg::SendTransfer> transfers(ahead);
    std::vector<msg::SendTransfer*> free;
    for (msg::SendTransfer& transfer : transfers) {
      free.push_back(&transfer);
    }
    for (uint32_t begun = 0, done = 0; done < count;) {
      if (begun < count && !free.empty()) {
        msg::SendTransfer* const next = free.back();
        const int rc = context_->send_large(route_, 0, at(next - transfers.data()), bytes_, *next);
        if (rc == 0) {
          free.pop_back();
          ++begun;
          continue;
        }
        if (rc != -EAGAIN) {
          die("send", rc);
        }
      }
      port_->progress();
      while (msg::SendTransfer* const sent = context_->next_sent()) {
        if (sent->status != 0) {
          die("sent", sent->status);
        }
        free.push_back(sent);
        ++done;
      }
    }
  }

  void receive(uint32_t count, uint32_t ahead) {
    std::vector<msg::RecvTransfer> transfers(ahead);
    for (uint32_t begun = 0, done = 0; done < count;) {
      port_->progress();
      while (begun < count && begun - done < ahead && !context_->inbox().empty()) {
        // Transfers of one sender may end in another order: take any that is not under way.
        size_t i = 0;
        while (transfers[i].context != nullptr) {
          ++i;
        }
        context_->receive_large(context_->take_request(), at(i), bytes_, transfers[i]);
        ++begun;
      }
      while (msg::RecvTransfer* const received = context_->next_received()) {
        if (received->status != 0) {
          die("received", received->status);
        }
        received->context = nullptr;
        ++done;
      }
    }
    static_cast<void>(port_->flush(1000));
  }

  [[nodiscard]] msg::MessagePort& port() { return *port_; }

 private:
  void* at(size_t i) {
    const auto base = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (kPage - base % kPage) + i * (bytes_ + (kPage - bytes_ % kPage));
  }

  uint64_t bytes_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<msg::MessagePort> port_;
  std::unique_ptr<msg::MessageContext> context_;
  msg::Route route_;
};

int run(int argc, char** argv) {
  const uint64_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 4u << 20;
  const uint32_t count = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1000;
  const uint32_t ahead = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 4;
  const std::string card = "shm:bandwidth-" + std::to_string(getpid()) +
                           (argc > 4 ? std::string(",") + argv[4] : std::string());
  const pid_t child = fork();
  pin(child == 0 ? 1 : 0);
  Side side(card + (child == 0 ? ",id=2" : ",id=1"), child == 0 ? 1 : 2, bytes, ahead);
  if (child == 0) {
    side.receive(ahead, ahead);
    side.receive(count, ahead);
    std::_Exit(0);
  }
  side.send(ahead, ahead);  // the first touch of all memory
  const auto begin = Clock::now();
  side.send(count, ahead);
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::printf("{\"bytes\": %llu, \"gigabytes_per_s\": %.3f, \"copied\": %llu, \"placed\": %llu}\n",
              static_cast<unsigned long long>(bytes),
              static_cast<double>(bytes) * count / took.count() / 1e9,
              static_cast<unsigned long long>(side.port().stats().copied),
              static_cast<unsigned long long>(side.port().stats().placed));
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace rio::bench

int main(int argc, char** argv) {
  return rio::bench::run(argc, argv);
}
