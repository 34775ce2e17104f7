/// @file
/// fi_endpoint(): an endpoint of reliable datagrams (RDM).
#pragma once

#include <array>
#include <memory>

#include "lib/ofi/channel.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"

namespace rio::ofi {

class Endpoint : public fid_ep {
 public:
  using Fid = fid_ep;

  Endpoint(Domain& domain, const fi_info& info, void* user_context);
  ~Endpoint();

  /// As fi_ep_bind() and fi_enable(). Under a Guard.
  [[nodiscard]] int bind(struct fid& what, uint64_t flags);
  [[nodiscard]] int enable();
  /// As fi_getname().
  [[nodiscard]] int name(void* out, size_t* bytes) const;

  [[nodiscard]] bool enabled() const { return number_ >= 0; }
  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] const Bindings& bound() const { return bound_; }
  /// Of messages with and without a tag.
  [[nodiscard]] Channel& tagged() { return tagged_; }
  [[nodiscard]] Channel& plain() { return plain_; }

  /// Hot. Under a Guard.
  void progress() {
    tagged_.progress();
    plain_.progress();
  }

 private:
  [[nodiscard]] int bind_vector(AddressVector& av);
  [[nodiscard]] int bind_queue(CompletionQueue& queue, uint64_t flags);

  Domain& domain_;
  Use use_{domain_};
  Bindings bound_;
  std::array<Use, 3> uses_;  // of what it is bound to
  uint64_t caps_;
  int number_ = -1;
  Channel tagged_;
  Channel plain_;
};

/// fi_endpoint().
int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** out, void* user_context);

// What the calls of its kinds of messages are: tagged.cc, plain.cc.
[[nodiscard]] fi_ops_tagged* tagged_ops();
[[nodiscard]] fi_ops_msg* plain_ops();

}  // namespace rio::ofi
