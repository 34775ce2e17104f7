// riopmd.h: open, close, options and information.
#include <algorithm>
#include <bit>
#include <cstring>

#include "pmd/api/handle.hpp"

namespace rio::pmd::api {
namespace {

constexpr uint32_t kOptionsMin = sizeof(uint32_t);

/// The caller's options, with defaults for members that its version of the struct does not have.
[[nodiscard]] int read_options(const rio_options* given, rio_options* out) {
  rio_options options{};
  if (given != nullptr) {
    const uint32_t size = given->size_bytes;
    if (size < kOptionsMin || size % kOptionsMin != 0) {
      base::log_error("rio_options: size_bytes is %u; set it to sizeof(struct rio_options)", size);
      return -EINVAL;
    }
    const auto* const bytes = reinterpret_cast<const uint8_t*>(given);
    // A newer program may have members that this library lacks, as long as it does not use them.
    if (size > sizeof(options) &&
        std::any_of(bytes + sizeof(options), bytes + size, [](uint8_t b) { return b != 0; })) {
      base::log_error("rio_options: %u bytes, this library knows %zu; install a newer libriopmd",
                      size, sizeof(options));
      return -E2BIG;
    }
    std::memcpy(&options, given, std::min<size_t>(size, sizeof(options)));
  }
  *out = options;
  return 0;
}

void set_unless_zero(uint32_t value, uint32_t* out) {
  if (value != 0) {
    *out = value;
  }
}

[[nodiscard]] int to_config(const rio_options& o, EndpointConfig* out) {
  EndpointConfig config;
  config.queue_pair = o.queue_pair;
  config.dest_id = o.dest_id;
  if (o.dest_id_bits != 0 && o.dest_id_bits != 8 && o.dest_id_bits != 16 && o.dest_id_bits != 32) {
    base::log_error("rio_options: dest_id_bits is %u; it is 8, 16 or 32", o.dest_id_bits);
    return -EINVAL;
  }
  config.card.dest_id_size = o.dest_id_bits == 0 ? 1 : o.dest_id_bits / 16;
  set_unless_zero(o.response_timeout_us, &config.card.response_timeout_us);
  set_unless_zero(o.receive_timeout_us, &config.card.receive_timeout_us);
  set_unless_zero(o.retry_delay_us, &config.card.retry_delay_us);
  set_unless_zero(o.stop_timeout_ms, &config.card.reset_timeout_ms);
  config.card.retry_limit = o.retry_limit;
  config.card.vf_qps = std::min(o.vf_queue_pairs, regs::kMaxQps);  // more is refused alike
  pmd::QueuePairConfig& queues = config.queues;
  const struct {
    const char* name;
    uint32_t entries;
    uint32_t* log2;
  } rings[] = {{"tx_entries", o.tx_entries, &queues.tx_log2},
               {"shared_entries", o.shared_entries, &queues.shared_log2},
               {"dedicated_entries", o.dedicated_entries, &queues.dedicated_log2},
               {"doorbell_entries", o.doorbell_entries, &queues.doorbell_log2},
               {"dma_entries", o.dma_entries, &queues.dma_log2},
               {"maint_entries", o.maint_entries, &queues.maint_log2},
               {"event_entries", o.event_entries, &queues.event_log2},
               {"barrier_entries", o.barrier_entries, &queues.barrier_log2}};
  for (const auto& ring : rings) {
    if (ring.entries != 0 && !std::has_single_bit(ring.entries)) {
      base::log_error("rio_options: %s is %u; it must be a power of two", ring.name, ring.entries);
      return -EINVAL;
    }
    *ring.log2 =
        ring.entries != 0 ? static_cast<uint32_t>(std::countr_zero(ring.entries)) : *ring.log2;
  }
  queues.rings = o.rings;
  set_unless_zero(o.stop_timeout_ms, &queues.stop_timeout_ms);
  config.irq_rings = o.irq_rings;
  if (o.irq_moderation_us > UINT16_MAX || o.receive_times > 1 || o.push > 1 || o.barriers > 1) {
    base::log_error(
        "rio_options: irq_moderation_us is %u, receive_times %u, push %u, barriers %u; give up to "
        "65535, and 0 or 1",
        o.irq_moderation_us, o.receive_times, o.push, o.barriers);
    return -EINVAL;
  }
  queues.barriers = o.barriers != 0;
  set_unless_zero(o.barrier_resend_max, &queues.barrier_resends);
  queues.barrier_reserve = o.barrier_reserve;
  queues.push = o.push != 0;
  queues.receive_times = o.receive_times != 0;
  queues.irq_moderation_us = static_cast<uint16_t>(o.irq_moderation_us);
  *out = config;
  return 0;
}

template <class Open>
[[nodiscard]] int open_card(const rio_options* options, rio_card** out, Open&& open) {
  return guarded([&] {
    rio_options read;
    EndpointConfig config;
    if (const int rc = read_options(options, &read); rc != 0) {
      return rc;
    }
    if (const int rc = to_config(read, &config); rc != 0) {
      return rc;
    }
    std::unique_ptr<Endpoint> endpoint;
    if (const int rc = open(config, &endpoint); rc != 0) {
      return rc;
    }
    *out = wrap(std::move(endpoint)).release();
    return 0;
  });
}

void fill_info(Endpoint& endpoint, rio_info* out) {
  const pmd::Caps& caps = endpoint.caps();
  pmd::QueuePair& pair = endpoint.queues();
  out->queue_pair = pair.index();
  out->dest_id = pair.dest_id();
  out->numa_node = endpoint.card().bus().numa_node();
  out->link_up = endpoint.card().link().up ? 1 : 0;
  out->rings = pair.rings();
  out->emulated = static_cast<uint32_t>(caps.is_model);
  out->queue_pairs = caps.queue_pairs;
  out->ring_entries_min = 1u << caps.ring_log2_min;
  out->ring_entries_max = 1u << caps.ring_log2_max;
  out->inline_bytes = caps.inline_bytes_max();
  out->tx_addr_align = caps.tx_addr_align;
  out->shared_addr_align = caps.shared_addr_align;
  out->dedicated_addr_align = caps.dedicated_addr_align;
  out->dedicated_size_align = caps.dedicated_size_align;
  out->dma_addr_align = caps.dma_addr_align;
  out->dma_bytes = caps.dma ? caps.dma_bytes : 0;
  out->tick_ns = caps.tick_ns;
  out->windows = pair.has_windows() ? 1 : 0;
  out->wide = caps.wide ? 1 : 0;
  out->barrier_rounds = caps.barrier_rounds;
  out->barrier_slots = caps.barrier_slots;
  out->barrier_early = caps.barrier_early;
}

}  // namespace

std::unique_ptr<rio_card> wrap(std::unique_ptr<Endpoint> endpoint) {
  using regs::Ring;
  auto card = std::make_unique<rio_card>();
  pmd::QueuePair& pair = endpoint->queues();
  const uint32_t open = pair.rings();
  const auto is_open = [open](Ring ring) { return (open & pmd::ring_bit(ring)) != 0; };
  card->tx = is_open(Ring::kTx) ? &pair.tx() : nullptr;
  card->shared = is_open(Ring::kShared) ? &pair.shared() : nullptr;
  card->doorbells = is_open(Ring::kDoorbell) ? &pair.doorbells() : nullptr;
  card->dma = is_open(Ring::kDma) ? &pair.dma() : nullptr;
  card->maint = is_open(Ring::kMaint) ? &pair.maint() : nullptr;
  card->events = is_open(Ring::kEvent) ? &pair.events() : nullptr;
  card->barriers = is_open(Ring::kBarrier) ? &pair.barriers() : nullptr;
  card->endpoint = std::move(endpoint);
  return card;
}

}  // namespace rio::pmd::api

extern "C" {

uint32_t rio_api_version(void) {
  return RIO_API_VERSION;
}

int rio_open(const char* name, const rio_options* options, rio_card** out) {
  if (name == nullptr || out == nullptr) {
    rio::base::log_error("rio_open: name or out is NULL; give both");
    return -EINVAL;
  }
  return rio::pmd::api::open_card(options, out,
                                  [&](const rio::EndpointConfig& config, auto* endpoint) {
                                    return rio::Endpoint::open(std::string(name), config, endpoint);
                                  });
}

int rio_open_queue_pair(rio_card* card, const rio_options* options, rio_card** out) {
  if (card == nullptr || out == nullptr) {
    rio::base::log_error("rio_open_queue_pair: card or out is NULL; give both");
    return -EINVAL;
  }
  return rio::pmd::api::open_card(options, out,
                                  [&](const rio::EndpointConfig& config, auto* endpoint) {
                                    return card->endpoint->open_queue_pair(config, endpoint);
                                  });
}

int rio_close(rio_card* card) {
  const std::unique_ptr<rio_card> owned(card);
  return card == nullptr ? 0 : rio::pmd::api::guarded([&] { return card->endpoint->close(); });
}

int rio_stop(rio_card* card) {
  return rio::pmd::api::guarded([&] { return card->endpoint->queues().stop(); });
}

int rio_get_info(rio_card* card, rio_info* out, size_t size_bytes) {
  if (out == nullptr || size_bytes < sizeof(uint32_t)) {
    rio::base::log_error("rio_get_info: %zu bytes; give sizeof(struct rio_info)", size_bytes);
    return -EINVAL;
  }
  return rio::pmd::api::guarded([&] {
    rio_info info{};
    rio::pmd::api::fill_info(*card->endpoint, &info);
    std::memset(out, 0, size_bytes);
    std::memcpy(out, &info, std::min(size_bytes, sizeof(info)));
    return 0;
  });
}

const char* rio_name(const rio_card* card) {
  return card->endpoint->name().c_str();
}

uint32_t rio_dest_id(const rio_card* card) {
  return card->endpoint->dest_id();
}

int rio_catch_bus_errors(void) {
  return rio::catch_bus_errors();
}

int rio_gone(rio_card* card) {
  return card->endpoint->card().gone() ? 1 : 0;
}

int rio_wait_link(rio_card* card, uint32_t timeout_ms) {
  return rio::pmd::api::guarded([&] { return card->endpoint->wait_link(timeout_ms); });
}

int rio_pin(rio_card* card, const char* cpus) {
  return rio::pmd::api::guarded(
      [&] { return card->endpoint->pin_poller(cpus == nullptr ? "" : cpus); });
}

}  // extern "C"
