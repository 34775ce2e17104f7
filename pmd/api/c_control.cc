// riopmd.h: memory, dedicated queues, windows, maintenance, interrupts, rings, names.
#include <atomic>
#include <cstring>
#include <iterator>
#include <span>

#include "pmd/api/handle.hpp"

namespace {

using rio::pmd::MaintQueue;
using rio::pmd::api::guarded;
using rio::pmd::api::with_queue;

std::atomic<rio_log_fn> g_log{nullptr};

void pass_on(rio::base::LogLevel level, const char* line) noexcept {
  // acquire: what the function uses is set up; pairs with the release in rio_set_log.
  if (const rio_log_fn fn = g_log.load(std::memory_order_acquire); fn != nullptr) {
    fn(static_cast<int>(level), line);
  }
}

/// Call a function of the maintenance queue. @param arguments those before the time-out.
template <class Function, class Word, class... Arguments>
[[nodiscard]] int maintain(rio_card* card, Function function, Word* words, size_t count,
                           uint32_t timeout_ms, Arguments... arguments) {
  if (card->maint == nullptr) {
    rio::base::log_error("%s: no maintenance queue is open; queue pair 0 has it, if the card does",
                         rio_name(card));
    return -ENOTSUP;
  }
  if (words == nullptr) {
    rio::base::log_error("%s: maintenance access with words NULL; give 1 to %u words",
                         rio_name(card), RIO_MAINT_WORDS);
    return -EINVAL;
  }
  return guarded(
      [&] { return (card->maint->*function)(arguments..., std::span(words, count), timeout_ms); });
}

/// Convert a status that was read. @param rc of reading it; passed on.
[[nodiscard]] int give(int rc, const rio::pmd::RailState& state, rio_rail_state* out) {
  if (rc == 0) {
    *out = {state.sequence, state.reading ? 1u : 0u, state.receiving ? 1u : 0u, state.tx_bytes,
            state.rx_bytes, state.link.up ? 1u : 0u, state.time_ticks};
  }
  return rc;
}

/// The meaning of an errno here, where that is more than its usual text.
constexpr struct {
  int error;
  const char* text;
} kMeanings[] = {
    {0, "success"},
    {EINVAL, "invalid name, option or argument"},
    {E2BIG, "options of a newer version than the library"},
    {EBUSY, "in use"},
    {ENODEV, "no such card, or the card is gone"},
    {ENOENT, "not there, or not open"},
    {EPROTO, "the card, or the peer, breaks its contract"},
    {ENOMEM, "out of memory"},
    {ETIMEDOUT, "no answer in time"},
    {ENOTSUP, "not supported by this card or bus"},
    {ENOSPC, "no room left: all are open, or the disk is full"},
    {EXDEV, "not contiguous for the card"},
    {EACCES, "not permitted"},
    {EPERM, "not permitted"},
    {EIO, "error response"},
    {ENETDOWN, "link down"},
    {ECANCELED, "ring stopped, or cancelled"},
    {EFAULT, "the card cannot reach the memory"},
    {EAGAIN, "not now, or retries expired; try again"},
    {EEXIST, "mapped already"},
    {ENXIO, "not a message card"},
    {ECONNRESET, "the peer has gone, or was started anew"},
    {ECONNREFUSED, "the peer has no such context, endpoint or channel"},
    {EHOSTUNREACH, "the peer does not answer; is its program running, with this destID?"},
    {EMSGSIZE, "longer than the buffer, or than a message may be"},
    {EALREADY, "too late, it ends by itself"}};

template <class Ask>
[[nodiscard]] int ask_queue(rio_card* card, uint32_t ring, Ask&& ask) {
  return with_queue(*card, ring, [&](auto& queue) -> int {
    if constexpr (requires { queue.last_reject(); }) {
      return ask(queue);
    } else {
      return -ENOENT;  // no bursts that post
    }
  });
}

}  // namespace

extern "C" {

int rio_alloc(rio_card* card, size_t len_bytes, size_t align_bytes, rio_memory* out) {
  return guarded([&] {
    rio::pmd::DmaMemory memory;
    if (const int rc = card->endpoint->alloc(len_bytes, align_bytes, &memory); rc != 0) {
      return rc;
    }
    *out = {memory.va, memory.iova, memory.len_bytes};
    return 0;
  });
}

int rio_free(rio_card* card, const rio_memory* memory) {
  return guarded([&] {
    return card->endpoint->free({memory->va, memory->iova, memory->len_bytes});
  });
}

int rio_register(rio_card* card, void* va, size_t len_bytes) {
  return guarded([&] { return card->endpoint->register_memory(va, len_bytes, nullptr); });
}

int rio_unregister(rio_card* card, void* va, size_t len_bytes) {
  return guarded([&] { return card->endpoint->unregister_memory(va, len_bytes); });
}

int rio_iova(rio_card* card, const void* va, size_t len_bytes, uint64_t* iova) {
  return guarded([&] { return card->endpoint->iova(va, len_bytes, iova); });
}

int rio_dedicated_open(rio_card* card, uint32_t i, uint32_t source, uint32_t mbox) {
  return guarded([&] {
    rio::pmd::DedicatedRxQueue* queue = nullptr;
    const int rc = card->endpoint->open_dedicated(i, source, mbox, &queue);
    if (rc == 0) {
      card->dedicated[i] = queue;
    }
    return rc;
  });
}

int rio_dedicated_close(rio_card* card, uint32_t i) {
  return guarded([&] {
    const int rc = card->endpoint->close_dedicated(i);
    if (card->endpoint->queues().dedicated(i) == nullptr && i < card->dedicated.size()) {
      card->dedicated[i] = nullptr;
    }
    return rc;
  });
}

int rio_window_open(rio_card* card, const rio_window* window, uint32_t* index) {
  rio::pmd::QueuePair& pair = card->endpoint->queues();
  if (!pair.has_windows()) {
    rio::base::log_error("%s: queue pair %u has no inbound windows; take another", rio_name(card),
                         pair.index());
    return -ENOTSUP;
  }
  return guarded([&] {
    return pair.windows().open({window->rio_addr, window->size_bytes, window->iova, window->rights,
                                window->source, window->source_mask, window->key},
                               index);
  });
}

int rio_window_close(rio_card* card, uint32_t index) {
  rio::pmd::QueuePair& pair = card->endpoint->queues();
  return !pair.has_windows() ? -ENOENT : guarded([&] { return pair.windows().close(index); });
}

int rio_barrier_load(rio_card* card, uint32_t slot, const rio_barrier_desc* desc, uint64_t cookie) {
  return card->barriers == nullptr ? -ENOENT : guarded([&] {
    rio::regs::BarrierDesc words;
    static_assert(sizeof words == sizeof *desc);
    std::memcpy(&words, desc, sizeof words);
    return card->barriers->load(slot, words, cookie);
  });
}

int rio_rail_open(rio_card* card, uint32_t period_us) {
  return guarded([&] { return card->endpoint->open_rail_watch(period_us); });
}

int rio_rail_close(rio_card* card) {
  return guarded([&] { return card->endpoint->close_rail_watch(); });
}

int rio_rail_read(rio_card* card, rio_rail_state* out) {
  const rio::pmd::RailWatch* const watch = card->endpoint->rail_watch();
  rio::pmd::RailState state;
  return watch == nullptr ? -ENOENT : give(watch->read(&state), state, out);
}

int rio_rail_decode(const rio_entry_done* done, const void* bytes, rio_rail_state* out) {
  const rio::pmd::EntryDone entry{done->cookie, done->bytes,
                                  static_cast<rio::pmd::Status>(done->status), done->retries};
  rio::regs::RailStatus status;
  static_assert(sizeof status == RIO_RAIL_BYTES);
  std::memcpy(&status, bytes, sizeof status);
  rio::pmd::RailState state;
  return give(rio::pmd::read_rail_answer(entry, status, &state), state, out);
}

int rio_barrier_counter(rio_card* card, uint32_t i, const char** name, uint32_t* value) {
  rio::pmd::Card& owner = card->endpoint->card();
  const uint32_t qp = card->endpoint->queues().index();
  if (i >= std::size(rio::pmd::kBarrierCounterNames) || !owner.blocks().has_barrier(qp)) {
    return -ENOENT;
  }
  const auto& counter = rio::pmd::kBarrierCounterNames[i];
  *name = counter.name;
  *value = owner.barrier_counters(qp).*counter.value;
  return 0;
}

int rio_maint_read(rio_card* card, uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                   uint32_t* words, size_t count, uint32_t timeout_ms) {
  return maintain(card, &MaintQueue::read, words, count, timeout_ms, dest_id, hop_count, offset);
}

int rio_maint_write(rio_card* card, uint32_t dest_id, uint8_t hop_count, uint32_t offset,
                    const uint32_t* words, size_t count, uint32_t timeout_ms) {
  return maintain(card, &MaintQueue::write, words, count, timeout_ms, dest_id, hop_count, offset);
}

int rio_local_read(rio_card* card, uint32_t offset, uint32_t* words, size_t count,
                   uint32_t timeout_ms) {
  return maintain(card, &MaintQueue::read_local, words, count, timeout_ms, offset);
}

int rio_local_write(rio_card* card, uint32_t offset, const uint32_t* words, size_t count,
                    uint32_t timeout_ms) {
  return maintain(card, &MaintQueue::write_local, words, count, timeout_ms, offset);
}

int rio_port_write(rio_card* card, uint32_t dest_id, uint8_t hop_count, const uint32_t* words,
                   size_t count, uint32_t timeout_ms) {
  return maintain(card, &MaintQueue::port_write, words, count, timeout_ms, dest_id, hop_count);
}

int rio_irq_fd(rio_card* card) {
  return card->endpoint->irq_fd();
}

int rio_irq_arm(rio_card* card, uint32_t rings) {
  return card->endpoint->irq_arm(rings);
}

int rio_irq_ack(rio_card* card) {
  return card->endpoint->irq_ack();
}

int rio_get_stats(rio_card* card, uint32_t ring, rio_stats* out) {
  return with_queue(*card, ring, [out](auto& queue) {
    const rio::pmd::QueueStats stats = queue.stats();
    *out = {stats.messages, stats.bytes, stats.failed, stats.rejected, stats.bad_completions};
    return 0;
  });
}

int rio_ring_state(rio_card* card, uint32_t ring) {
  return with_queue(*card, ring, [&](auto& queue) {
    rio::regs::RingError error{};
    uint32_t entry = 0;
    const int state = queue.ring_state(&error, &entry);
    if (state == static_cast<int>(rio::regs::RingState::kError)) {
      rio::base::log_error("%s: ring %s: the card stopped it at entry %u: %s; %s", rio_name(card),
                           rio::pmd::ring_name(ring), entry, rio::pmd::name(error),
                           rio::pmd::remedy(error));
    }
    return state;
  });
}

int rio_last_reject(rio_card* card, uint32_t ring) {
  return ask_queue(card, ring, [](auto& queue) { return static_cast<int>(queue.last_reject()); });
}

int rio_free_count(rio_card* card, uint32_t ring) {
  return ask_queue(card, ring, [](auto& queue) { return int{queue.free_count()}; });
}

int rio_outstanding(rio_card* card, uint32_t ring) {
  return ask_queue(card, ring, [](auto& queue) { return int{queue.outstanding()}; });
}

void rio_set_log(rio_log_fn fn) {
  // release: what `fn` uses is visible before it is called; pairs with the acquire in pass_on.
  g_log.store(fn, std::memory_order_release);
  rio::base::set_log_sink(fn != nullptr ? &pass_on : nullptr);
}

const char* rio_strerror(int result) {
  const int error = result < 0 ? -result : 0;
  for (const auto& meaning : kMeanings) {
    if (meaning.error == error) {
      return meaning.text;
    }
  }
  const char* const text = strerrordesc_np(error);
  return text != nullptr ? text : "unknown error; the log says more";
}

const char* rio_status_name(uint8_t status) {
  return rio::pmd::name(static_cast<rio::pmd::Status>(status));
}

const char* rio_reject_name(int reject) {
  return reject < 0 || reject > UINT8_MAX ? "unknown reject"
                                          : rio::pmd::name(static_cast<rio::pmd::Reject>(reject));
}

const char* rio_event_name(uint8_t type) {
  return rio::pmd::name(static_cast<rio::regs::EventType>(type));
}

}  // extern "C"
