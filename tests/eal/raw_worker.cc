#include "tests/eal/raw_worker.hpp"

#include <poll.h>
#include <rte_dev.h>
#include <rte_malloc.h>
#include <rte_rawdev.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <sstream>

#include "pmd/dev/queue_pair.hpp"
#include "pmd/raw/raw_rio.hpp"
#include "pmd/raw/rte_raw_rio.h"

namespace rio::test {
namespace {

constexpr uint32_t kBytes = 4096;
constexpr uint32_t kBuffers = 16;

void say(const std::string& line) {
  const std::string text = line + "\n";
  (void)!write(STDOUT_FILENO, text.data(), text.size());
}

/// Sends messages to its own queue pair and compares them.
class Traffic {
 public:
  Traffic(pmd::QueuePair& pair, uint32_t dest_id, uint32_t seed)
      : pair_(pair), dest_id_(dest_id), value_(seed) {}
  ~Traffic() { rte_free(memory_); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  bool start() {
    memory_ = static_cast<uint8_t*>(rte_zmalloc("worker", (kBuffers + 1) * kBytes, kBytes));
    if (memory_ == nullptr) {
      return false;
    }
    iova_ = rte_malloc_virt2iova(memory_);
    for (uint32_t i = 0; i < kBuffers; ++i) {
      const pmd::RxBuffer buffer{.iova = iova_ + i * kBytes, .cookie = i};
      if (pair_.shared().post(&buffer, 1) != 1) {
        return false;
      }
    }
    return true;
  }

  /// Handles one message at a time: sends, receives, compares, reaps. @return whether anything
  /// moved.
  bool turn() {
    const uint64_t before = moved_;
    if (!busy_) {
      send();
    }
    pmd::RxMessage got{};
    if (pair_.shared().burst(&got, 1) == 1) {
      receive(got);
    }
    pmd::TxDone done{};
    if (pair_.tx().reap(&done, 1) == 1) {
      errors += done.status == pmd::Status::kOk ? 0 : 1;
      sent_ = true;
      ++moved_;
    }
    if (sent_ && received_) {
      ++messages;
      busy_ = sent_ = received_ = false;
    }
    return moved_ != before;
  }

  uint64_t messages = 0;
  uint64_t errors = 0;

 private:
  void send() {
    value_ = value_ * 1664525u + 1013904223u;
    len_ = 8 + value_ % (kBytes - 8 + 1);
    len_ &= ~7u;
    std::memset(tx(), static_cast<int>(value_ >> 24), len_);
    const pmd::TxMessage message{.iova = iova_ + kBuffers * kBytes,
                                 .cookie = value_,
                                 .dest_id = dest_id_,
                                 .length_bytes = static_cast<uint16_t>(len_),
                                 .mbox = 1,
                                 .flags = 0};
    busy_ = pair_.tx().burst(&message, 1) == 1;
  }
  void receive(const pmd::RxMessage& got) {
    const uint8_t* const bytes = memory_ + got.cookie * kBytes;
    const bool good = got.status == pmd::Status::kOk && got.source == dest_id_ &&
                      got.length_bytes == len_ && std::memcmp(bytes, tx(), len_) == 0;
    errors += good ? 0 : 1;
    received_ = true;
    ++moved_;
    const pmd::RxBuffer back{.iova = iova_ + got.cookie * kBytes, .cookie = got.cookie};
    errors += pair_.shared().post(&back, 1) == 1 ? 0 : 1;
  }
  uint8_t* tx() const { return memory_ + size_t{kBuffers} * kBytes; }

  pmd::QueuePair& pair_;
  uint32_t dest_id_;
  uint32_t value_;
  uint32_t len_ = 0;
  uint8_t* memory_ = nullptr;
  uint64_t iova_ = 0;
  bool busy_ = false;
  bool sent_ = false;
  bool received_ = false;
  uint64_t moved_ = 0;
};

/// Follows a command. @return false: stop.
bool obey(const std::string& line, uint16_t dev, const Traffic& traffic) {
  std::istringstream words(line);
  std::string command;
  std::string what;
  words >> command >> what;
  if (command == "count") {
    say("count " + std::to_string(traffic.messages) + " " + std::to_string(traffic.errors));
  } else if (command == "plug") {
    say("plugged " + std::to_string(rte_eal_hotplug_add("vdev", what.c_str(), "stepping=thread")));
  } else if (command == "unplug") {
    say("unplugged " + std::to_string(rte_eal_hotplug_remove("vdev", what.c_str())));
  } else if (command == "devices") {
    say("devices " + std::to_string(rte_rawdev_count()));
  } else if (command == "selftest") {
    say("selftest " + std::to_string(rte_rawdev_selftest(dev)));
  } else if (command == "reset") {
    say("reset " + std::to_string(rte_rawdev_reset(dev)));
  } else if (command == "stop") {
    return false;
  }
  return true;
}

}  // namespace

int run_worker(const std::string& device, uint16_t qp) {
  const uint16_t dev = rte_rawdev_get_dev_id(device.c_str());
  if (dev >= RTE_RAWDEV_MAX_DEVS) {
    say("no device");
    return 1;
  }
  if (const int rc = rte_rawdev_queue_setup(dev, qp, nullptr, 0); rc != 0) {
    say(rc == -EBUSY ? "busy" : "setup failed " + std::to_string(rc));
    return rc == -EBUSY ? 0 : 1;
  }
  if (rte_rawdev_start(dev) != 0) {
    say("start failed");
    return 1;
  }
  pmd::QueuePair* const pair = pmd::raw_queue_pair(dev, qp);
  Traffic traffic(*pair, pair->dest_id(), 77u + qp);
  if (!traffic.start()) {
    say("no memory");
    return 1;
  }
  say("claimed");
  std::string input;
  uint32_t idle = 0;
  for (uint32_t turn = 0;; ++turn) {
    idle = traffic.turn() ? 0 : idle + 1;
    if (idle > 64) {
      usleep(20);  // five of these share two CPUs with the card
    }
    pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (turn % 64 != 0 || poll(&in, 1, 0) <= 0) {
      continue;
    }
    char bytes[256];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n <= 0) {
      break;
    }
    input.append(bytes, static_cast<size_t>(n));
    for (size_t end = input.find('\n'); end != std::string::npos; end = input.find('\n')) {
      const std::string line = input.substr(0, end);
      input.erase(0, end + 1);
      if (!obey(line, dev, traffic)) {
        rte_rawdev_stop(dev);  // before the traffic's memory goes
        say("stopped " + std::to_string(traffic.errors));
        return traffic.errors == 0 ? 0 : 1;
      }
    }
  }
  rte_rawdev_stop(dev);
  return 1;
}

}  // namespace rio::test
