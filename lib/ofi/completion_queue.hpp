/// @file
/// fi_cq_open(): completions of operations.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/wait.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

class AddressVector;

/// A completed operation. Each of libfabric's formats is the beginning of the first member.
struct Completion {
  fi_cq_tagged_entry entry = {};
  AddressVector* av = nullptr;  ///< of the receiver; null: this was a send
  tag::Address source = 0;      ///< context of tagged messages
  int error = 0;                ///< FI_E…, above 0
  size_t lost_bytes = 0;        ///< bytes for which there was no room
};

/// A completion queue. It grows: nothing is lost, however late the user reads it.
class CompletionQueue : public fid_cq, public Used {
 public:
  using Fid = fid_cq;

  CompletionQueue(Domain& domain, const fi_cq_attr& attr, void* user_context);
  ~CompletionQueue();

  /// Hot. Under a Guard, which the caller holds until the entry is filled in. @return the next
  /// place, cleared. Filled in place, since copying a finished entry would use loads wider than the
  /// stores that wrote it: such a load waits until all earlier stores have reached the cache.
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
    // Users read until the queue is empty: the call that finds it empty comes right after one that
    // made progress.
    return says_empty(count) ? -FI_EAGAIN : look_and_take(out, count, sources);
  }
  /// As fi_cq_sread(). @param condition with FI_CQ_COND_THRESHOLD the least number of entries to
  /// wait for. @param timeout_ms negative: for ever.
  [[nodiscard]] ssize_t wait_and_read(void* out, size_t count, fi_addr_t* sources,
                                      const void* condition, int timeout_ms);
  /// As fi_cq_readerr().
  [[nodiscard]] ssize_t read_error(fi_cq_err_entry* out, uint64_t flags);
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
  /// As Wait::control().
  [[nodiscard]] int control(int command, void* out) { return wait_.control(command, out); }
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
  bool counts_;  // sread's condition is a number of entries (FI_CQ_COND_THRESHOLD)
  std::vector<Completion> ring_;
  uint32_t mask_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  bool signalled_ = false;
  bool emptied_ = false;  // by the previous call
  Wait wait_{domain_};
};

int open_completion_queue(fid_domain* domain, fi_cq_attr* attr, fid_cq** out, void* user_context);

}  // namespace rio::ofi
