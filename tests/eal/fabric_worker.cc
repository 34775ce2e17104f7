#include "tests/eal/fabric_worker.hpp"

#include <poll.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>

#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/child_process.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kBytes = 4096;
constexpr uint32_t kBuffers = 16;
constexpr uint32_t kSomeMessages = 100;

void say(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(STDOUT_FILENO, text.data(), text.size());
}

uint8_t byte_of(uint32_t dest_id, uint32_t length, uint32_t at) {
  return static_cast<uint8_t>(dest_id / 256 * 101 + length * 7 + length / 256 + at * 31 + at / 256);
}

/// Sends and receives one message at a time.
class Mail {
 public:
  explicit Mail(pmd::QueuePair& pair) : pair_(pair), own_(pair.dest_id()) {}
  ~Mail() { rte_free(memory_); }
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  bool start() {
    memory_ = static_cast<uint8_t*>(rte_zmalloc("mail", (kBuffers + 1) * kBytes, kBytes));
    iova_ = rte_malloc_virt2iova(memory_);
    for (uint32_t i = 0; memory_ != nullptr && i < kBuffers; ++i) {
      give(i);
    }
    return memory_ != nullptr;
  }
  [[nodiscard]] uint32_t own() const { return own_; }
  /// Posts a message. @return false: one is under way, or the ring is full.
  bool send(uint32_t dest_id, uint32_t length) {
    if (under_way_) {
      return false;
    }
    for (uint32_t i = 0; i < length; ++i) {
      out()[i] = byte_of(dest_id, length, i);
    }
    const pmd::TxMessage message{.iova = iova_ + kBuffers * kBytes,
                                 .cookie = length,
                                 .dest_id = dest_id,
                                 .length_bytes = static_cast<uint16_t>(length),
                                 .mbox = 1,
                                 .flags = 0};
    under_way_ = pair_.tx().burst(&message, 1) == 1;
    return under_way_;
  }
  /// Checks the message sent. @return 1: it was delivered, 0: not yet, -1: failed.
  int sent() {
    pmd::TxDone done{};
    if (pair_.tx().reap(&done, 1) == 0) {
      return 0;
    }
    under_way_ = false;
    return done.status == pmd::Status::kOk ? 1 : -1;
  }
  /// Receives a message. @param length that it must have; 0: any. @return 1: right, 0: none, -1:
  /// wrong.
  int got(uint32_t source, uint32_t length) {
    pmd::RxMessage message{};
    if (pair_.shared().burst(&message, 1) == 0) {
      return 0;
    }
    const uint8_t* const bytes = memory_ + message.cookie * kBytes;
    // The card reports lengths in steps of 8.
    bool right = message.status == pmd::Status::kOk && message.source == source &&
                 message.length_bytes == (length + 7) / 8 * 8;
    for (uint32_t i = 0; i < length; ++i) {
      right = right && bytes[i] == byte_of(own_, length, i);
    }
    give(static_cast<uint32_t>(message.cookie));
    return right || length == 0 ? 1 : -1;
  }

 private:
  void give(uint32_t i) {
    const pmd::RxBuffer buffer{.iova = iova_ + i * kBytes, .cookie = i};
    (void)pair_.shared().post(&buffer, 1);
  }
  [[nodiscard]] uint8_t* out() const { return memory_ + size_t{kBuffers} * kBytes; }

  pmd::QueuePair& pair_;
  uint32_t own_;
  uint8_t* memory_ = nullptr;
  uint64_t iova_ = 0;
  bool under_way_ = false;
};

/// Gives up when there is no progress for kPatienceMs.
std::string exchange(Mail& mail, uint32_t peer) {
  using Clock = std::chrono::steady_clock;
  auto moved = Clock::now();
  uint32_t sent = 0;
  uint32_t got = 0;
  while (sent < kBytes || got < kBytes) {
    if (sent < kBytes) {
      (void)mail.send(peer, sent + 1);  // false while the one before is under way
    }
    const int out = mail.sent();
    const int in = mail.got(peer, got + 1);
    if (out < 0 || in < 0 || Clock::now() - moved > std::chrono::milliseconds(kPatienceMs)) {
      return "exchange: " + std::to_string(sent) + " sent, then " + std::to_string(out) + "; " +
             std::to_string(got) + " got, then " + std::to_string(in);
    }
    sent += out == 1 ? 1 : 0;
    got += in == 1 ? 1 : 0;
    if (out == 0 && in == 0) {
      sched_yield();
    } else {
      moved = Clock::now();
    }
  }
  return "exchanged";
}

void stream(Mail& mail, uint32_t peer) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (uint32_t sent = 0; std::chrono::steady_clock::now() < end;) {
    while (!mail.send(peer, 1 + sent % kBytes)) {
    }
    int out = 0;
    while ((out = mail.sent()) == 0 && std::chrono::steady_clock::now() < end) {
      sched_yield();
    }
    if (out != 1) {
      say(out < 0 ? "failed" : "stuck");
      return;
    }
    if (++sent == kSomeMessages) {
      say("streaming");
    }
  }
  say("no send failed");
}

bool input_waits() {
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&in, 1, 0) > 0;
}

void sink(Mail& mail, uint32_t peer) {
  for (uint32_t got = 0; !input_waits();) {
    if (mail.got(peer, 0) == 0) {
      sched_yield();
    } else if (++got == kSomeMessages) {
      say("sinking");
    }
  }
}

}  // namespace

int run_fabric_worker(const std::string& device) {
  const uint16_t dev = rte_rawdev_get_dev_id(device.c_str());
  if (dev >= RTE_RAWDEV_MAX_DEVS || rte_rawdev_queue_setup(dev, 0, nullptr, 0) != 0 ||
      rte_rawdev_start(dev) != 0) {
    say("no device");
    return 1;
  }
  {
    Mail mail(*pmd::raw_queue_pair(dev, 0));
    if (!mail.start()) {
      say("no memory");
      return 1;
    }
    say("destid " + std::to_string(mail.own()));
    for (std::string line; std::getline(std::cin, line) && line != "stop";) {
      std::istringstream words(line);
      std::string command;
      uint32_t peer = 0;
      words >> command >> peer;
      if (command == "exchange") {
        say(exchange(mail, peer));
      } else if (command == "stream") {
        stream(mail, peer);
      } else if (command == "sink") {
        sink(mail, peer);
      } else if (command == "set_dest_id") {
        say("set " + std::to_string(rte_rawdev_set_attr(dev, "qp0.dest_id", peer)));
      } else if (command == "configure") {
        rte_rawdev_stop(dev);
        rte_raw_rio_config config{};
        config.base_dest_id = peer;
        rte_rawdev_info info{
            .driver_name = nullptr, .device = nullptr, .socket_id = 0, .dev_private = &config};
        say("configured " + std::to_string(rte_rawdev_configure(dev, &info, sizeof(config))));
      }
    }
    rte_rawdev_stop(dev);  // before the memory is freed
  }
  return 0;
}

}  // namespace rio::test
