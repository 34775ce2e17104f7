/// @file
/// fi_cq_open(): what is done.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/wait.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

class AddressVector;

/// Something that is done. Every format of libfabric's is the beginning of the first member.
struct Completion {
  fi_cq_tagged_entry entry = {};
  AddressVector* av = nullptr;  ///< of the receiver; null: a send
  tag::Address source = 0;      ///< context of tagged messages
  int error = 0;                ///< FI_E…, above 0
  size_t lost_bytes = 0;        ///< bytes for which there was no room
};

/// Grows: nothing is lost, however long the queue is not read.
class CompletionQueue : public fid_cq, public Used {
 public:
  using Fid = fid_cq;

  CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* user_context);
  ~CompletionQueue();

  /// Hot. Under a Guard, which lasts until it is filled in. @return the next place, with nothing in
  /// it. One that was put together elsewhere would be copied by loads wider than its stores, which
  /// wait until all stores before them have reached the cache.
  [[nodiscard]] Completion& add() {
    if (tail_ - head_ > mask_) [[unlikely]] {
      grow();
    }
    wait_.news();
    Completion& place = ring_[tail_++ & mask_];
    place = {};
    return place;
  }

  /// Hot. As fi_cq_read() and fi_cq_readfrom(). @param sources null: not wanted.
  [[nodiscard]] ssize_t read(void* out, size_t count, fi_addr_t* sources) {
    // Users read until there is nothing: the call that says so comes right after one that looked.
    return says_empty(count) ? -FI_EAGAIN : look_and_take(out, count, sources);
  }
  /// As fi_cq_sread(). @param condition with FI_CQ_COND_THRESHOLD the least number of entries to
  /// wait for. @param timeout_ms negative: for ever.
  [[nodiscard]] ssize_t wait_and_read(void* out, size_t count, fi_addr_t* sources,
                                      const void* condition, int timeout_ms);
  /// As fi_cq_readerr().
  [[nodiscard]] ssize_t read_error(fi_cq_err_entry* out, uint32_t version);
  /// As fi_cq_signal().
  void signal();
  /// Under a Guard. Whether there is neither a completion nor an error to read.
  [[nodiscard]] bool is_empty() const { return head_ == tail_; }
  [[nodiscard]] Domain& domain() { return domain_; }
  /// Under a Guard. Mark messages received from a destID as from an unknown source, because another
  /// process has that destID now.
  void disown(uint32_t dest_id);
  /// Under a Guard. Mark completions of a vector that closes as from an unknown source:
  /// FI_ADDR_NOTAVAIL.
  void forget(const AddressVector& av);
  [[nodiscard]] Wait& waiter() { return wait_; }
  /// As fi_trywait().
  [[nodiscard]] int arm();

 private:
  [[nodiscard]] bool says_empty(size_t count) {
    const msg::Guard guard(domain_.port());
    if (!emptied_ || count == 0) {
      return false;
    }
    emptied_ = false;
    return is_empty();
  }
  [[nodiscard]] ssize_t look_and_take(void* out, size_t count, fi_addr_t* sources);
  void copy(const Completion& from, uint8_t* to) const;
  [[nodiscard]] ssize_t take(void* out, size_t count, fi_addr_t* sources);
  void grow();

  Domain& domain_;
  Use use_{domain_};
  size_t entry_bytes_;
  bool counts_;  // FI_CQ_COND_THRESHOLD
  std::vector<Completion> ring_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  bool signalled_ = false;
  bool emptied_ = false;  // by the call before
  Wait wait_{domain_};
};

int open_completion_queue(fid_domain* domain, fi_cq_attr* attr, fid_cq** out, void* user_context);

}  // namespace rio::ofi
