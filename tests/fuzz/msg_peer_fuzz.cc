// A peer that sends any bytes, to a port on two cards with a context and an endpoint of tagged
// messages, which work as users do meanwhile. Some messages are sent unchanged, others with the
// session's key and number, to reach the code behind these checks. Afterwards the port must still
// serve a peer that keeps the rules.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/tag/tagged_context.hpp"
#include "pmd/api/riopmd.hpp"

using namespace rio;

namespace {

constexpr uint32_t kPort = 1;
constexpr uint32_t kPeer = 2;
constexpr uint32_t kPeerKey = 0xBAD00001;
constexpr uint32_t kTurns = 2000;  // the longest wait

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

/// The rest of the input.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool empty() const { return at_ == end_; }
  uint8_t byte() { return empty() ? 0 : *at_++; }
  std::vector<uint8_t> bytes(size_t count) {
    count = std::min<size_t>(count, end_ - at_);
    std::vector<uint8_t> out(at_, at_ + count);
    at_ += count;
    return out;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

/// The peer's card.
class Peer {
 public:
  Peer() {
    EndpointConfig config;
    config.dest_id = kPeer;
    config.message_buffers = 2 * kBuffers;
    require(Endpoint::open("emu:fuzz", config, &card_) == 0);
    uint32_t index[kBuffers];
    require(card_->buffers()->get(index, kBuffers) == kBuffers);
    for (const uint32_t i : index) {
      give(i);
    }
    require(card_->buffers()->get(&out_, 1) == 1);
    require(card_->buffers()->get(&answer_, 1) == 1);
  }

  void send(const std::vector<uint8_t>& bytes, uint8_t mailbox) { send(out_, bytes, mailbox); }
  /// Reads received messages, and learns the keys of sessions.
  void work() {
    pmd::TxDone done{};
    while (card_->tx().reap(&done, 1) == 1) {
    }
    pmd::RxMessage message{};
    while (card_->shared().burst(&message, 1) == 1) {
      const auto index = static_cast<uint32_t>(message.cookie);
      hear(card_->buffers()->va(index), message.length_bytes);
      give(index);
    }
  }
  void hello() { send(session(msg::Kind::kHello, 0), 0); }
  /// Sends a message about rails with the session's keys, and then the bytes of the input.
  void say_rails(uint8_t what, const std::vector<uint8_t>& rest) {
    const auto kind = static_cast<msg::Kind>(static_cast<uint8_t>(msg::Kind::kRails) + what % 4);
    const uint64_t words[] = {0, msg::HeaderWords::rest_of(0, 0, 0, kind, 0),
                              msg::kMagic | uint64_t{key} << 32, kPeerKey};
    std::vector<uint8_t> bytes(sizeof(words) - sizeof(uint32_t));
    std::memcpy(bytes.data(), words, bytes.size());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    if (what < 192) {
      bytes.resize(msg::kHeaderBytes +
                   (kind == msg::Kind::kRails ? sizeof(msg::RailsBody) : sizeof(msg::RailBody)));
    }
    send(bytes, 0);
  }
  /// Sends the session's key and number, and then the bytes of the input.
  void say(std::vector<uint8_t> rest, uint8_t mailbox) {
    const uint64_t first = msg::HeaderWords::key_and_number(key, number++);
    const auto* const at = reinterpret_cast<const uint8_t*>(&first);
    rest.insert(rest.begin(), at, at + sizeof(first));
    send(rest, mailbox);
  }

  uint32_t key = 0;
  uint32_t number = 0;

 private:
  static constexpr uint32_t kBuffers = 64;
  static constexpr uint32_t kRails = 2;  // that it claims to have

  /// @param known the port's key, which the peer has heard
  static std::vector<uint8_t> session(msg::Kind kind, uint32_t known) {
    const msg::HeaderWords header = {0, msg::HeaderWords::rest_of(0, 0, 0, kind, 0)};
    const msg::SessionBody body = {msg::kMagic, kPeerKey, known, 100, 1, kRails};
    std::vector<uint8_t> bytes(sizeof(header) + sizeof(body));
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), &body, sizeof(body));
    return bytes;
  }
  void send(uint32_t buffer, const std::vector<uint8_t>& bytes, uint8_t mailbox) {
    if (bytes.empty()) {
      return;
    }
    std::memcpy(card_->buffers()->va(buffer), bytes.data(), bytes.size());
    pmd::TxMessage message{};
    message.iova = card_->buffers()->iova(buffer);
    message.dest_id = kPort;
    message.length_bytes = static_cast<uint16_t>(bytes.size());
    message.mbox = mailbox;
    static_cast<void>(card_->tx().burst(&message, 1));
  }
  void give(uint32_t index) {
    const pmd::RxBuffer buffer{card_->buffers()->iova(index), index};
    static_cast<void>(card_->shared().post(&buffer, 1));
  }
  void hear(const uint8_t* at, uint32_t length_bytes) {
    msg::SessionBody body;
    if (length_bytes < msg::kHeaderBytes + sizeof(body)) {
      return;
    }
    const msg::Kind kind = msg::load_header(at).kind();
    std::memcpy(&body, at + msg::kHeaderBytes, sizeof(body));
    const bool fresh = kind == msg::Kind::kWelcome && key != body.session;
    if (fresh) {
      key = body.session;
      number = body.first;
    }
    if (fresh || kind == msg::Kind::kHello) {
      send(answer_, session(msg::Kind::kWelcome, body.session), 0);  // the port waits for it
    }
  }

  std::unique_ptr<Endpoint> card_;
  uint32_t out_ = 0;
  uint32_t answer_ = 0;
};

class World {
 public:
  World() {
    msg::PortConfig config;
    config.card = "emu:fuzz+emu:loop";
    config.dest_id = kPort;
    config.buffers = 128;
    config.share = 16;
    config.profile = "none";
    config.response_timeout_us = 1000;
    require(msg::MessagePort::open(config, &port_) == 0);
    require(msg::MessageContext::create(*port_, 0, &context_) == 0);
    require(tag::TaggedContext::create(*port_, 1, {}, &tag_) == 0);
    buffers_.resize(kRequests * kBufferBytes);
    meet();
  }
  ~World() {
    meet();  // the port still serves a peer
    drop_messages();
  }

  void run(Input input) {
    while (!input.empty()) {
      one(&input);
      work(2);
    }
  }

 private:
  static constexpr uint32_t kRequests = 8;
  static constexpr size_t kBufferBytes = 20000;

  void meet() {
    peer_.key = 0;
    for (uint32_t turn = 0; peer_.key == 0; ++turn) {
      require(turn < kTurns);
      if (turn % 64 == 0) {
        peer_.hello();
      }
      work(1);
    }
  }
  void work(uint32_t turns) {
    for (uint32_t i = 0; i < turns; ++i) {
      tag_->progress();
      peer_.work();
    }
    while (tag_->next_done() != nullptr) {
    }
    require(port_->unshared() <= 128);
  }
  void drop_messages() {
    while (!context_->inbox().empty()) {
      require(context_->inbox().at(0).iov_len <= msg::kPartBytesMax);
      context_->drop_oldest();
    }
  }

  void one(Input* input) {
    const uint8_t what = input->byte();
    const uint32_t at = what / 16u % kRequests;
    switch (what % 8) {
      case 0:
        if (what < 128) {
          peer_.send(input->bytes(input->byte()), 0);
        } else {
          const uint8_t kind = input->byte();
          peer_.say_rails(kind, input->bytes(input->byte()));
        }
        break;
      case 1:
      case 2:
      case 3: {
        const uint8_t mailbox = input->byte() % 4;
        std::vector<uint8_t> rest = input->bytes(input->byte() % 64);
        rest.resize(rest.size() + (what >= 128 ? input->byte() * 15u : 0));
        peer_.say(std::move(rest), mailbox);
        break;
      }
      case 4:
        receive(at, input->byte());
        break;
      case 5:
        send(at, input->byte());
        break;
      case 6:
        cancel(at);
        break;
      default:
        drop_messages();
        if (what >= 128) {
          meet();
        }
    }
  }
  void receive(uint32_t at, uint8_t bits) {
    if (receives_[at].stage == tag::Stage::kIdle) {
      const tag::Pattern pattern = {bits, bits > 127 ? ~uint64_t{0} : 0, tag::kAnySource};
      static_cast<void>(
          tag_->receive(pattern, buffers_.data() + at * kBufferBytes, kBufferBytes, receives_[at]));
    }
  }
  void send(uint32_t at, uint8_t bits) {
    if (sends_[at].stage == tag::Stage::kIdle) {
      const size_t sizes[] = {0, 60, 5000, kBufferBytes};
      const tag::Address to = tag::address(kPeer, bits % 2);
      static_cast<void>(
          bits < 128 ? tag_->send(to, bits, buffers_.data(), sizes[bits % 4], sends_[at])
                     : tag_->send_sync(to, bits, buffers_.data(), sizes[bits % 4], sends_[at]));
    }
  }
  void cancel(uint32_t at) {
    static_cast<void>(tag_->cancel(receives_[at]));
    static_cast<void>(tag_->cancel(sends_[at]));
    tag::MessageInfo info{};
    if (tag::Message* const message = tag_->claim({0, ~uint64_t{0}, tag::kAnySource}, &info);
        message != nullptr && receives_[at].stage == tag::Stage::kIdle) {
      static_cast<void>(tag_->receive_claimed(*message, buffers_.data() + at * kBufferBytes,
                                              kBufferBytes, receives_[at]));
    }
  }

  std::vector<uint8_t> buffers_;
  std::array<tag::SendRequest, kRequests> sends_;
  std::array<tag::RecvRequest, kRequests> receives_;
  Peer peer_;
  std::unique_ptr<msg::MessagePort> port_;
  std::unique_ptr<msg::MessageContext> context_;
  std::unique_ptr<tag::TaggedContext> tag_;
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  base::set_log_sink([](base::LogLevel, const char*) noexcept {});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  world.run(Input(data, size));
  return 0;
}
