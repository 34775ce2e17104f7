// A member of a barrier group that sends any bytes, as messages of its context, to a member that
// keeps the rules. Some messages are sent unchanged, others with the key, serial and ticket of the
// group, to reach the code behind the checks of these. The third member keeps the rules, too: the
// member under test must not pass a barrier at which the third has not arrived.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "lib/barrier/group.hpp"
#include "lib/barrier/group_message.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"

using namespace rio;
using barrier::GroupMessage;

namespace {

constexpr uint16_t kContext = 1;
constexpr uint32_t kVictim = 0;
constexpr uint32_t kLiar = 1;
constexpr uint32_t kHonest = 2;
constexpr uint32_t kRanks = 3;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// A folder for the wire, which is removed at the end.
class WireFolder {
 public:
  WireFolder() {
    require(mkdtemp(name_.data()) != nullptr);
    require(setenv("RIO_RUNTIME_DIR", name_.c_str(), 1) == 0);
  }
  ~WireFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  WireFolder(const WireFolder&) = delete;
  WireFolder& operator=(const WireFolder&) = delete;

 private:
  std::string name_ = "/tmp/barrier-fuzz-XXXXXX";
};

std::unique_ptr<msg::MessagePort> open_port(uint32_t rank) {
  msg::PortConfig config;
  config.card = "shm:fuzz,id=" + std::to_string(rank + 1);
  config.buffers = 128;
  config.share = 16;
  config.profile = "none";
  std::unique_ptr<msg::MessagePort> port;
  require(msg::MessagePort::open(config, &port) == 0);
  return port;
}

/// The hostile member: a context of its own, and the words of the group that it has received.
class Liar {
 public:
  Liar() : port_(open_port(kLiar)) {
    require(msg::MessageContext::create(*port_, kContext, &context_) == 0);
    for (const uint32_t rank : {kVictim, kHonest}) {
      require(port_->route(rank + 1, kContext, kContext, msg::Kind::kData, &routes_[rank]) == 0);
    }
  }

  void work() {
    port_->progress();
    for (; !context_->inbox().empty(); context_->drop_oldest()) {
      const iovec& bytes = context_->inbox().at(0);
      GroupMessage message;
      if (read({static_cast<const uint8_t*>(bytes.iov_base), bytes.iov_len}, &message)) {
        heard_.key = message.key;
        heard_.serial = message.serial != 0 ? message.serial : heard_.serial;
        heard_.ticket = message.ticket != 0 ? message.ticket : heard_.ticket;
        heard_.digest = message.digest != 0 ? message.digest : heard_.digest;
        heard_.attempt = message.attempt != 0 ? message.attempt : heard_.attempt;
      }
    }
  }
  /// Send a message of the input's bytes. @param known whether to put in the words of the group.
  void say(uint32_t to, std::vector<uint8_t> bytes, bool known) {
    GroupMessage message;
    if (known) {
      bytes.resize(sizeof(message));
      std::memcpy(&message, bytes.data(), sizeof(message));
      message.version = GroupMessage::kVersion;
      message.rank = (message.rank & 0x80) != 0 ? message.rank : kLiar;
      message.key = heard_.key;
      message.serial = heard_.serial;
      message.ticket = heard_.ticket;
      message.digest = heard_.digest;
      message.attempt = heard_.attempt;
      message.ranks = kRanks;
      message.epoch %= 4;
      std::memcpy(bytes.data(), &message, sizeof(message));
      bytes.resize(message.size_bytes());
    }
    static_cast<void>(port_->send(routes_[to], bytes.data(), static_cast<uint32_t>(bytes.size())));
  }
  /// Send one message by the rules.
  void join() {
    GroupMessage message = heard_;
    message.what = barrier::What::kJoin;
    message.rank = kLiar;
    message.serial = 0;
    message.ticket = 77;
    message.ranks = kRanks;
    message.ways = GroupMessage::kSoftwareBit;
    static_cast<void>(port_->send(routes_[kVictim], &message, message.size_bytes()));
  }
  void answer() {
    GroupMessage message = heard_;
    message.what = barrier::What::kLoaded;
    message.rank = kLiar;
    static_cast<void>(port_->send(routes_[kVictim], &message, message.size_bytes()));
  }

 private:
  std::unique_ptr<msg::MessagePort> port_;
  std::unique_ptr<msg::MessageContext> context_;
  std::array<msg::Route, kRanks> routes_;
  GroupMessage heard_;
};

class World {
 public:
  World() {
    for (const uint32_t rank : {kVictim, kHonest}) {
      ports_[rank] = open_port(rank);
      require(barrier::BarrierContext::create(*ports_[rank], kContext, &contexts_[rank]) == 0);
      begin(rank, 0);
    }
  }
  ~World() {
    for (auto& group : groups_) {
      group.reset();
    }
    for (auto& context : contexts_) {
      context.reset();
    }
  }

  void run(const uint8_t* data, size_t size) {
    const uint8_t* const end = data + size;
    while (data != end) {
      const uint8_t what = *data++;
      const size_t length = std::min<size_t>(what / 8u * 3u, static_cast<size_t>(end - data));
      one(what % 8, {data, data + length});
      data += length;
      work(3);
      check();
    }
  }

 private:
  void begin(uint32_t rank, uint64_t key) {
    const std::array<msg::Address, kRanks> members = {
        msg::address(1, kContext), msg::address(2, kContext), msg::address(3, kContext)};
    barrier::GroupOptions options;
    options.key = key;
    require(contexts_[rank]->create_group(members, rank, options, &groups_[rank]) == 0);
  }
  void work(uint32_t turns) {
    for (; turns > 0; --turns) {
      contexts_[kVictim]->progress();
      contexts_[kHonest]->progress();
      liar_.work();
    }
  }
  void check() {
    if (groups_[kVictim]->arrivals() != 0 && groups_[kVictim]->test() == 1) {
      require(groups_[kHonest]->arrivals() >= groups_[kVictim]->arrivals());
    }
  }
  void one(uint32_t what, std::vector<uint8_t> bytes) {
    switch (what) {
      case 0:
        liar_.say(kVictim, std::move(bytes), false);
        break;
      case 1:
      case 2:
        liar_.say(kVictim, std::move(bytes), true);
        break;
      case 3:
        liar_.say(kHonest, std::move(bytes), true);
        break;
      case 4:
        liar_.join();
        work(20);
        liar_.answer();
        work(20);
        break;
      case 5:
        static_cast<void>(groups_[kVictim]->arrive());
        break;
      case 6:
        static_cast<void>(groups_[kHonest]->arrive());
        break;
      default:
        for (const uint32_t rank : {kVictim, kHonest}) {
          groups_[rank].reset();
        }
        ++key_;
        for (const uint32_t rank : {kVictim, kHonest}) {
          begin(rank, key_ % 4);
        }
    }
  }

  std::array<std::unique_ptr<msg::MessagePort>, kRanks> ports_;
  std::array<std::unique_ptr<barrier::BarrierContext>, kRanks> contexts_;
  std::array<std::unique_ptr<barrier::Group>, kRanks> groups_;
  Liar liar_;
  uint64_t key_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  static const WireFolder folder;
  base::set_log_sink([](base::LogLevel, const char*) noexcept {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  world.run(data, size);
  return 0;
}
