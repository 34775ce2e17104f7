#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

int QueueBase::start(Bus& bus, const Caps& caps, const RingConfig& config, const RingShape& shape) {
  if (const int error = ring_.start(bus, caps, config, shape); error != 0) {
    return error;
  }
  bar_ = bus.bar();
  hook_ = ring_.hook();
  tail_offset_ = ring_.tail_offset();
  cursor_.base = ring_.completions();
  cursor_.mask = (1u << ring_.log2()) - 1;
  cursor_.phase_shift = 31 - ring_.log2();
  cursor_.consumed = ring_.start_index();
  return 0;
}

int PostingQueue::start(Bus& bus, const Caps& caps, const RingConfig& config,
                        const RingShape& shape) {
  if (const int error = QueueBase::start(bus, caps, config, shape); error != 0) {
    return error;
  }
  if (const int error = window_.create(config.log2, config.start_index); error != 0) {
    return error;
  }
  sizes_ = window_.sizes();
  return 0;
}

}  // namespace rio::pmd
