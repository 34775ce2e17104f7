#include "tests/qemu/guest/guest.hpp"

#include <cstring>

namespace rio::guest {

using pmd::Status;

void fill(void* at, size_t len_bytes, uint32_t seed) {
  auto* bytes = static_cast<uint8_t*>(at);
  for (size_t i = 0; i < len_bytes; ++i) {
    bytes[i] = static_cast<uint8_t>(seed * 37 + i * 11 + (i >> 8));
  }
}

bool filled(const void* at, size_t len_bytes, uint32_t seed) {
  std::vector<uint8_t> wanted(len_bytes);
  fill(wanted.data(), len_bytes, seed);
  return std::memcmp(at, wanted.data(), len_bytes) == 0;
}

bool Station::open(const std::string& card, EndpointConfig config) {
  config.message_buffers = kBuffers;
  if (config.dest_id == 0) {
    config.dest_id = kDestId;
  }
  return Endpoint::open(card, config, &card_) == 0 && prepare();
}

bool Station::open_beside(Station& first, EndpointConfig config) {
  config.message_buffers = kBuffers;
  return first.card().open_queue_pair(config, &card_) == 0 && prepare();
}

bool Station::prepare() {
  if (card_->alloc(kTxBytes, 4096, &memory_) != 0 || card_->wait_link(30'000) != 0) {
    return false;
  }
  uint32_t index = 0;
  while (card_->buffers()->get(&index, 1) == 1) {
    const pmd::RxBuffer buffer{card_->buffers()->iova(index), index};
    if (card_->shared().post(&buffer, 1) != 1) {
      fail("buffer %u is not taken", index);
      return false;
    }
  }
  return true;
}

bool Station::send(const pmd::TxMessage& message, pmd::TxDone* done) {
  if (card_->tx().burst(&message, 1) != 1) {
    fail("a message of %u bytes is refused, reason %d", message.length_bytes,
         static_cast<int>(card_->tx().last_reject()));
    return false;
  }
  if (!eventually([&] { return card_->tx().reap(done, 1) == 1; })) {
    fail("nothing became of a message of %u bytes", message.length_bytes);
    return false;
  }
  return true;
}

bool Station::receive(pmd::RxMessage* message, const uint8_t** bytes) {
  if (!eventually([&] { return card_->shared().burst(message, 1) == 1; })) {
    fail("no message came");
    return false;
  }
  const auto index = static_cast<uint32_t>(message->cookie);
  *bytes = card_->buffers()->va(index);
  // The card takes the buffers in turn: this one is its last.
  const pmd::RxBuffer buffer{card_->buffers()->iova(index), index};
  return card_->shared().post(&buffer, 1) == 1;
}

bool Station::pass(Station& to, uint32_t len_bytes, uint32_t value, uint8_t mbox) {
  fill(memory_.va, len_bytes, value);
  pmd::TxMessage out{};
  out.iova = memory_.iova;
  out.cookie = value;
  out.dest_id = to.dest_id();
  out.length_bytes = static_cast<uint16_t>(len_bytes);
  out.mbox = mbox;
  pmd::TxDone done{};
  if (!send(out, &done)) {
    return false;
  }
  pmd::RxMessage in{};
  const uint8_t* bytes = nullptr;
  if (done.status != Status::kOk || done.cookie != value || !to.receive(&in, &bytes)) {
    fail("%u bytes: status %d, cookie %llu", len_bytes, static_cast<int>(done.status),
         static_cast<unsigned long long>(done.cookie));
    return false;
  }
  const uint32_t padded = (len_bytes + 7) & ~7u;
  if (in.status != Status::kOk || in.source != dest_id() || in.mbox != mbox ||
      in.length_bytes != padded || !filled(bytes, len_bytes, value)) {
    fail("%u bytes came as %u, status %d, from 0x%x", len_bytes, in.length_bytes,
         static_cast<int>(in.status), in.source);
    return false;
  }
  return true;
}

int Station::close() {
  const int rc = card_->close();
  card_.reset();
  return rc;
}

}  // namespace rio::guest
