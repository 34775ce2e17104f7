#include "pmd/raw/device.hpp"

#include <cerrno>
#include <utility>

#include "base/log.hpp"

namespace rio::pmd {

RawDevice::RawDevice(std::string name, std::shared_ptr<EalCard> card)
    : name_(std::move(name)), card_(std::move(card)), queues_(card_->queue_pairs()) {
  card_->enter(*this);
}

RawDevice::~RawDevice() {
  stop();
  card_->leave(*this);
}

RawDevice* RawDevice::peer() {
  if (wire().empty() || wire() == "loop") {
    return this;
  }
  for (const uint16_t id : device_ids()) {
    RawDevice* const other = find_device(id);
    if (other != this && other->wire() == wire()) {
      return other;
    }
  }
  return nullptr;
}

void RawDevice::before_reset() {
  start_again_ = started_;
  stop();
}

int RawDevice::after_reset() {
  return std::exchange(start_again_, false) ? start() : 0;
}

int RawDevice::configure(const rte_raw_rio_config& config) {
  CardArgs wanted = card_->args();
  const auto replace = [](uint32_t value, uint32_t* place) {
    *place = value != 0 ? value : *place;
  };
  replace(config.response_timeout_us, &wanted.response_timeout_us);
  replace(config.receive_timeout_us, &wanted.receive_timeout_us);
  replace(config.retry_delay_us, &wanted.retry_delay_us);
  wanted.retry_limit = config.retry_limit;
  wanted.base_dest_id = config.base_dest_id;
  const uint64_t most_us = uint64_t{2} * wanted.response_timeout_us;
  if (config.receive_timeout_us == 0 && wanted.receive_timeout_us > most_us) {
    wanted.receive_timeout_us = static_cast<uint32_t>(most_us);
  }
  return card_->configure(wanted);
}

}  // namespace rio::pmd
