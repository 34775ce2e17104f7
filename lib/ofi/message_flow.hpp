/// @file
/// Messages of one kind of an endpoint: those with a tag, or those without.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/slab.hpp"
#include "lib/ofi/address_vector.hpp"
#include "lib/ofi/bindings.hpp"
#include "lib/ofi/completion_queue.hpp"
#include "lib/ofi/info.hpp"
#include "lib/tag/tagged_context.hpp"

namespace rio::ofi {

/// A send under way.
struct SendOperation : tag::SendRequest {
  bool tells = false;     ///< report a completion
  bool injected = false;  ///< the user has its memory back and was promised delivery
  std::unique_ptr<uint8_t[]> copy;
};

/// A receive under way.
struct RecvOperation : tag::RecvRequest {
  bool tells = false;
  bool multi = false;               ///< FI_MULTI_RECV: messages follow each other in the buffer
  bool ends = false;                ///< FI_MULTI_RECV was cancelled: no further message follows
  bool discards = false;            ///< FI_DISCARD: the bytes are dropped, which is not an error
  bool is_told = false;             ///< the peek that found the message has reported its completion
                                    ///< already
  std::unique_ptr<uint8_t[]> copy;  ///< one piece; scattered into the user's buffers at the end
  std::array<iovec, kIovMax> pieces = {};
  size_t piece_count = 0;

  /// Hot. Clear the members that a receive does not set, and that an earlier one may have left.
  void recycle() {
    ends = false;
    discards = false;
    is_told = false;
    offered = false;
    large = nullptr;
    if (copy != nullptr) [[unlikely]] {
      copy.reset();
    }
  }
};

/// A tag, and which of its bits a receive ignores; both 0 for messages without tags.
struct Match {
  uint64_t tag = 0;
  uint64_t ignore = 0;
};

/// All functions under a Guard.
class MessageFlow {
 public:
  /// @param kind FI_TAGGED or FI_MSG. @param offset from an endpoint's first context.
  MessageFlow(const Bindings& bound, uint64_t kind, uint32_t offset)
      : bound_(bound), kind_(kind), offset_(offset) {}
  ~MessageFlow();

  /// @return 0, or as tag::TaggedContext::create().
  [[nodiscard]] int enable(Domain& domain, uint32_t first_context);

  /// Hot. @param flags of this operation. @return 0; -FI_EINVAL, -FI_ENOMEM, or why the peer cannot
  /// be reached.
  [[nodiscard]] ssize_t send(fi_addr_t to, uint64_t tag, tag::Immediate immediate, const void* data,
                             size_t bytes, void* context, uint64_t flags);
  /// Like send(), gathered from several buffers.
  [[nodiscard]] ssize_t send(fi_addr_t to, uint64_t tag, tag::Immediate immediate,
                             const Buffers& from, void* context, uint64_t flags) {
    return post(to, tag, immediate, from, context, flags, tells_sent(flags));
  }
  /// Hot. Send a copy of the bytes, without a completion. @param bytes up to kInjectBytes.
  [[nodiscard, gnu::always_inline]] ssize_t inject(fi_addr_t to, uint64_t tag,
                                                   tag::Immediate immediate, const void* data,
                                                   size_t bytes) {
    if (!tag_->send_tiny(address_of(to), tag, immediate, data, bytes)) [[unlikely]] {
      return inject_slow(to, tag, immediate, data, bytes);
    }
    if (bound_.sends != nullptr) {
      tell_sent(nullptr, 0, false);
    }
    return 0;
  }
  /// Hot. Post a receive. @return as send().
  [[nodiscard]] ssize_t receive(fi_addr_t source, Match match, void* buffer, size_t bytes,
                                void* context, uint64_t flags) {
    tag::Address from = nobody();
    if (const int rc = find_source(source, &from); rc != 0) [[unlikely]] {
      return rc;
    }
    RecvOperation* const operation = begin(context, flags);
    if (operation == nullptr) [[unlikely]] {
      return -FI_ENOMEM;
    }
    return begun(tag_->receive({match.tag, match.ignore, from}, buffer, bytes, *operation),
                 *operation);
  }
  /// Like receive(), scattered to several buffers.
  [[nodiscard]] ssize_t receive(fi_addr_t source, Match match, const Buffers& to, void* context,
                                uint64_t flags);
  /// FI_PEEK, alone or with FI_CLAIM or FI_DISCARD: report a message that is there as a completion,
  /// also the only one of a message that it discards. @return 0; -FI_EINVAL: an unknown source, or
  /// a context that still has a claimed message; -FI_ENOCQ: no queue to report to.
  [[nodiscard]] ssize_t peek(fi_addr_t source, Match match, void* context, uint64_t flags);
  /// FI_CLAIM without FI_PEEK: receive the message claimed for `context`, or drop it with
  /// FI_DISCARD, with a completion without a length. @return as receive(); -FI_EINVAL: nothing was
  /// claimed for it.
  [[nodiscard]] ssize_t receive_claimed(const Buffers& to, void* context, uint64_t flags) {
    return take_claimed(to, context, flags, false);
  }
  /// Cancel a receive. @return 0: it was found, and ends with a completion; -FI_ENOENT.
  [[nodiscard]] ssize_t cancel(void* context);
  /// Whether an injected message has not been sent yet.
  [[nodiscard]] bool busy();

  /// Hot. Make progress, and report what has completed. After MessagePort::progress().
  void progress() {
    if (tag_ == nullptr) {
      return;
    }
    tag_->attend();
    tell_done();
  }
  /// tag::TaggedContext::forget_former() of its endpoint.
  void forget_former(uint32_t dest_id);

 private:
  void tell_done() {
    while (tag::Request* const request = tag_->next_done()) {
      if (request->is_receive) {
        finish(static_cast<RecvOperation&>(*request));
      } else {
        finish(static_cast<SendOperation&>(*request));
      }
    }
  }

  [[nodiscard]] tag::Address nobody() const { return AddressVector::kNoPeer; }
  [[nodiscard]] tag::Address address_of(fi_addr_t peer) const {
    const tag::Address first = bound_.av->find(peer);
    return first == AddressVector::kNoPeer ? first : first + offset_;
  }
  /// The context of a source. @return 0, or as AddressVector::find_slow().
  [[nodiscard]] int find_source(fi_addr_t source, tag::Address* out) {
    if (!bound_.directed || source == FI_ADDR_UNSPEC) {
      *out = tag::kAnySource;
      return 0;
    }
    *out = address_of(source);
    return *out != nobody() ? 0 : find_slow(source, out);
  }
  [[nodiscard]] bool tells_sent(uint64_t flags) const {
    return !bound_.tx_selective || (flags & FI_COMPLETION) != 0;
  }
  /// AddressVector::find_slow(), for when address_of() has no peer.
  [[nodiscard]] int find_slow(fi_addr_t peer, tag::Address* out);
  /// @return null: no memory.
  [[nodiscard]] RecvOperation* begin(void* context, uint64_t flags) {
    RecvOperation* const operation = receives_.get();
    if (operation != nullptr) [[likely]] {
      operation->user = context;
      operation->tells = !bound_.rx_selective || (flags & FI_COMPLETION) != 0;
      operation->multi = (flags & FI_MULTI_RECV) != 0;
    }
    return operation;
  }
  [[nodiscard]] RecvOperation* begin(void* context, uint64_t flags, const Buffers& to,
                                     iovec* buffer);
  [[nodiscard]] ssize_t begun(int rc, RecvOperation& operation) {
    return rc == 0 ? 0 : not_waiting(rc, operation);
  }
  [[nodiscard]] ssize_t take_claimed(const Buffers& to, void* context, uint64_t flags,
                                     bool is_told);
  [[nodiscard]] ssize_t not_waiting(int rc, RecvOperation& operation);
  [[nodiscard]] ssize_t inject_slow(fi_addr_t to, uint64_t tag, tag::Immediate immediate,
                                    const void* data, size_t bytes);
  [[nodiscard]] ssize_t post(fi_addr_t to, uint64_t tag, tag::Immediate immediate,
                             const Buffers& from, void* context, uint64_t flags, bool tells);
  void tell_sent(void* context, int error, bool tells);
  void on_failure(tag::Address peer, int status);
  void tell_found(const tag::MessageInfo* info, uint64_t tag, void* context, uint64_t flags);
  void finish(SendOperation& operation);
  static void scatter(const RecvOperation& operation);
  void tell_received(const RecvOperation& operation, uint64_t flags);
  void finish_multi(RecvOperation& operation);
  void finish(RecvOperation& operation);

  const Bindings& bound_;
  uint64_t kind_;
  uint32_t offset_;
  base::Slab<SendOperation> sends_;  // destroyed after tag_
  base::Slab<RecvOperation> receives_;
  std::unordered_map<void*, tag::Message*> claimed_;
  std::unordered_set<tag::Address> said_gone_;
  std::unique_ptr<tag::TaggedContext> tag_;
};

}  // namespace rio::ofi
