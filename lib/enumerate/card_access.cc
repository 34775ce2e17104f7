#include "lib/enumerate/card_access.hpp"

namespace rio::enumerate {
namespace {

constexpr uint32_t kRetries = 16;       // of RETRY answers
constexpr uint32_t kCardWaitMs = 5000;  // beyond the response time-out

}  // namespace

EndpointConfig CardAccess::config(uint32_t host_id, bool large, uint32_t timeout_ms) {
  EndpointConfig config;
  config.dest_id = host_id;
  config.card.dest_ids = {host_id};
  config.card.dest_id_size = large ? 1 : 0;
  config.card.response_timeout_us = timeout_ms * 1000;
  config.card.receive_timeout_us = 2 * config.card.response_timeout_us;
  config.card.retry_limit = kRetries;
  config.queues.rings = pmd::ring_bit(regs::Ring::kMaint);
  return config;
}

CardAccess::CardAccess(std::unique_ptr<Endpoint> endpoint, uint32_t timeout_ms)
    : endpoint_(std::move(endpoint)), wait_ms_(timeout_ms + kCardWaitMs) {}

int CardAccess::read(const Address& at, uint32_t offset, uint32_t* value) {
  pmd::MaintQueue& maint = endpoint_->maint();
  return at.is_own_card
             ? maint.read_local(offset, {value, 1}, wait_ms_)
             : maint.read(at.dest_id, static_cast<uint8_t>(at.hops), offset, {value, 1}, wait_ms_);
}

int CardAccess::write(const Address& at, uint32_t offset, uint32_t value) {
  pmd::MaintQueue& maint = endpoint_->maint();
  return at.is_own_card ? maint.write_local(offset, {&value, 1}, wait_ms_)
                        : maint.write(at.dest_id, static_cast<uint8_t>(at.hops), offset,
                                      {&value, 1}, wait_ms_);
}

}  // namespace rio::enumerate
