/// @file
/// fi_endpoint(): an endpoint of reliable datagrams (RDM).
#pragma once

#include <netinet/in.h>

#include <memory>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/message_flow.hpp"
#include "lib/ofi/remote.hpp"
#include "lib/ofi/service.hpp"

namespace rio::ofi {

class FiEndpoint : public fid_ep {
 public:
  using Fid = fid_ep;

  /// fi_endpoint(). Takes the Guard. @param out the user's, until fi_close(). @return 0;
  /// -FI_EINVAL, -FI_EADDRNOTAVAIL: impossible source address; -FI_EADDRINUSE; -FI_ENOSPC: the
  /// domain has no more endpoints. Logged.
  [[nodiscard]] static int open(fid_domain* domain, fi_info* info, fid_ep** out,
                                void* user_context);
  ~FiEndpoint();

  /// As fi_ep_bind(), fi_control(), of which it has FI_ENABLE only, and fi_cancel(). Under a Guard.
  [[nodiscard]] int bind(struct fid* what, uint64_t flags);
  [[nodiscard]] int control(int command, void*) {
    return command == FI_ENABLE ? enable() : -FI_ENOSYS;
  }
  [[nodiscard]] ssize_t cancel(void* context);
  /// As fi_getopt() and fi_setopt(). Under a Guard.
  [[nodiscard]] int get_option(int level, int name, void* out, size_t* bytes);
  [[nodiscard]] int set_option(int level, int name, const void* in, size_t bytes);
  /// Under a Guard. Whether peers wait for an answer, or an injected message has not been sent.
  [[nodiscard]] bool busy() { return tagged_.busy() || plain_.busy() || remote_.busy(); }
  /// As fi_getname().
  [[nodiscard]] int name(void* out, size_t* bytes) const;

  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] const Bindings& bound() const { return bound_; }
  /// Messages with a tag, and those without one.
  [[nodiscard]] MessageFlow& tagged() { return tagged_; }
  [[nodiscard]] MessageFlow& plain() { return plain_; }
  [[nodiscard]] Remote& remote() { return remote_; }

  /// Hot. Under a Guard, after MessagePort::progress().
  void progress() {
    tagged_.progress();
    plain_.progress();
    remote_.progress();
  }
  /// Under a Guard. Calls tag::TaggedContext::forget_former() of its tagged, plain and remote
  /// parts.
  void forget_former(uint32_t dest_id) {
    tagged_.forget_former(dest_id);
    plain_.forget_former(dest_id);
    remote_.forget_former(dest_id);
  }

 private:
  FiEndpoint(Domain& domain, const fi_info& info, void* user_context);
  [[nodiscard]] int take_source(const fi_info& info, int* number);
  [[nodiscard]] int take_socket(const fi_info& info);
  [[nodiscard]] int serve();
  [[nodiscard]] int enable();
  /// @return null: no such option.
  [[nodiscard]] size_t* option(int level, int name);
  [[nodiscard]] int bind_counter(FiCounter& counter, uint64_t flags);
  [[nodiscard]] int bind_queue(CompletionQueue& queue, uint64_t flags);

  Domain& domain_;
  Use use_{domain_};
  Bindings bound_;
  std::vector<Use> uses_;  // keeps the bound objects from being closed
  uint64_t caps_;
  int number_ = -1;       // its number in the domain
  uint16_t service_ = 0;  // service to serve; 0: none, and with FI_SOCKADDR_IN any
  in_addr own_ipv4_{};    // with FI_SOCKADDR_IN: the address that fi_getname() returns
  bool needs_service_ = false;
  bool enabled_ = false;
  std::unique_ptr<Service> served_;
  MessageFlow tagged_;
  MessageFlow plain_;
  Remote remote_;
};

// Implementations of its calls: message_calls.cc, remote_calls.cc.
extern fi_ops_tagged tagged_ops;
extern fi_ops_msg plain_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;

/// fi_query_atomic().
int query_atomic(fid_domain* domain, fi_datatype type, fi_op op, fi_atomic_attr* attr,
                 uint64_t flags);

}  // namespace rio::ofi
