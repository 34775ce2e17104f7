#include "lib/ofi/fi_endpoint.hpp"

#include <cstring>

#include "lib/msg/waiting.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/resolve.hpp"

namespace rio::ofi {
namespace {

/// Sends the answers that peers wait for, and injected messages, before it closes. A peer that does
/// not accept them in time loses them; if it has asked a question, it learns that the endpoint has
/// ended.
int close_endpoint(fid* fid) {
  constexpr uint32_t kPatienceMs = 1000;
  FiEndpoint* const endpoint = &of<FiEndpoint>(fid);
  const base::NoCancel no_cancel;
  Domain& domain = endpoint->domain();
  static_cast<void>(msg::wait(
      domain.port(), kPatienceMs, [&] { domain.progress(); }, [&] { return !endpoint->busy(); }));
  const msg::Guard guard(domain.port());
  delete endpoint;
  return 0;
}

using Self = FiEndpoint;
fi_ops object_ops =
    object_calls(close_endpoint, kGuarded<Self, &Self::bind>, kNoThrow<Self, &Self::control>);
constexpr Returns<static_cast<int>(kContextSize)> kSizeLeft;
fi_ops_ep endpoint_ops = {sizeof(fi_ops_ep),
                          kGuarded<Self, &Self::cancel>,
                          kGuarded<Self, &Self::get_option>,
                          kGuarded<Self, &Self::set_option>,
                          kNoCall,
                          kNoCall,
                          kSizeLeft,
                          kSizeLeft};
constexpr auto kGetName = kPlain<Self, &Self::name>;
fi_ops_cm cm_ops = {sizeof(fi_ops_cm), kNoCall, kGetName, kNoCall, kNoCall,
                    kNoCall,           kNoCall, kNoCall,  kNoCall, kNoCall};

/// Tables of calls, one for each interface of libfabric.
struct Calls {
  fi_ops_msg* msg;
  fi_ops_tagged* tagged;
  fi_ops_rma* rma;
  fi_ops_atomic* atomic;
};

/// Calls that an endpoint refuses with kRc. The queries for valid atomic operations work on every
/// endpoint.
template <int kRc>
[[nodiscard]] Calls refused_calls() {
  static constexpr Returns<kRc> kNo;
  static fi_ops_msg msg = {sizeof(msg), kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo};
  static fi_ops_tagged tagged = {sizeof(tagged), kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo};
  static fi_ops_rma rma = {sizeof(rma), kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo, kNo};
  static fi_ops_atomic atomic = [] {
    fi_ops_atomic made = {sizeof(made), kNo, kNo, kNo, kNo, kNo, kNo,
                          kNo,          kNo, kNo, kNo, kNo, kNo, kNo};
    made.writevalid = atomic_ops.writevalid;
    made.readwritevalid = atomic_ops.readwritevalid;
    made.compwritevalid = atomic_ops.compwritevalid;
    return made;
  }();
  return {&msg, &tagged, &rma, &atomic};
}

}  // namespace

FiEndpoint::FiEndpoint(Domain& domain, const fi_info& info, void* user_context)
    : fid_ep{{FI_CLASS_EP, user_context, &object_ops},
             &endpoint_ops,
             &cm_ops,
             refused_calls<-FI_EOPBADSTATE>().msg,
             refused_calls<-FI_EOPBADSTATE>().rma,
             refused_calls<-FI_EOPBADSTATE>().tagged,
             refused_calls<-FI_EOPBADSTATE>().atomic,
             nullptr},
      domain_(domain),
      caps_(info.caps),
      tagged_(bound_, FI_TAGGED, kTaggedContext),
      plain_(bound_, FI_MSG, kPlainContext),
      remote_(bound_, domain) {
  bound_.tx_flags = info.tx_attr != nullptr ? info.tx_attr->op_flags : 0;
  bound_.rx_flags = info.rx_attr != nullptr ? info.rx_attr->op_flags : 0;
  bound_.directed = (caps_ & FI_DIRECTED_RECV) != 0;
}

int FiEndpoint::open(fid_domain* domain, fi_info* info, fid_ep** out, void* user_context) {
  return no_throw([&] {
    if (info->ep_attr != nullptr && info->ep_attr->type != FI_EP_RDM) {
      return -FI_EINVAL;
    }
    Domain& of_domain = of<Domain>(domain);
    const msg::Guard guard(of_domain.port());
    std::unique_ptr<FiEndpoint> made(new FiEndpoint(of_domain, *info, user_context));
    int wanted = -1;
    if (const int rc = made->take_source(*info, &wanted); rc != 0) {
      return rc;
    }
    made->number_ = of_domain.add(*made, wanted);
    if (made->number_ < 0) {
      return made->number_;
    }
    *out = made.release();
    return 0;
  });
}

/// Read the source address: the service to serve, or a name that the endpoint had before. @param
/// number set to that of the name.
int FiEndpoint::take_source(const fi_info& info, int* number) {
  if (domain_.has_sockets()) {
    return take_socket(info);
  }
  if (info.src_addr == nullptr) {
    return 0;
  }
  Name name{};
  if (info.src_addrlen != sizeof(name) ||
      read_address(info.src_addr, domain_.fabric(), &name) != 0) {
    base::log_error(
        "rio: the source address is not of this provider and fabric; take src_addr from "
        "fi_getinfo()");
    return -FI_EINVAL;
  }
  if (is_service(name)) {
    service_ = service_of(name);
    needs_service_ = is_needed(name);
    return 0;
  }
  Name own{};
  if (!domain_.make_name(name.endpoint, &own) || own.dest_id != name.dest_id ||
      std::memcmp(own.address, name.address, sizeof(own.address)) != 0) {
    base::log_error(
        "rio: the source address is that of another card; set FI_RIO_DESTID, or leave it out");
    return -FI_EADDRNOTAVAIL;
  }
  *number = name.endpoint;
  return 0;
}

/// Read a source address in FI_SOCKADDR_IN. Its port is the service and its only name, so it is
/// needed.
int FiEndpoint::take_socket(const fi_info& info) {
  sockaddr_in source = make_socket({}, 0);
  needs_service_ = true;
  if (info.src_addr != nullptr &&
      (info.src_addrlen != sizeof(source) || read_socket(info.src_addr, &source) != 0)) {
    base::log_error(
        "rio: the source address is not FI_SOCKADDR_IN, as in this domain; take src_addr from "
        "fi_getinfo()");
    return -FI_EINVAL;
  }
  if (!is_own(source.sin_addr)) {
    base::log_error("rio: the source address is that of another machine; leave it out");
    return -FI_EADDRNOTAVAIL;
  }
  service_ = ntohs(source.sin_port);
  own_ipv4_ = source.sin_addr.s_addr == INADDR_ANY ? own_ipv4() : source.sin_addr;
  return 0;
}

/// Serve a service, if one is asked for or the format has no other names.
int FiEndpoint::serve() {
  if (service_ == 0 && !domain_.has_sockets()) {
    return 0;
  }
  Name name{};
  if (!domain_.make_name(static_cast<uint32_t>(number_), &name)) {
    return -FI_EOTHER;
  }
  return service_ != 0 ? Service::claim(domain_.fabric(), service_, name, needs_service_, &served_)
                       : Service::claim_any(domain_.fabric(), name, &service_, &served_);
}

FiEndpoint::~FiEndpoint() {
  if (number_ >= 0) {
    domain_.remove(static_cast<uint32_t>(number_));
  }
}

int FiEndpoint::bind(struct fid* what, uint64_t flags) {
  switch (what->fclass) {
    case FI_CLASS_AV:
      bound_.av = &of<AddressVector>(what);
      uses_.emplace_back(*bound_.av);
      return 0;
    case FI_CLASS_CQ:
      return bind_queue(of<CompletionQueue>(what), flags);
    case FI_CLASS_CNTR:
      return bind_counter(of<FiCounter>(what), flags);
    case FI_CLASS_EQ:
      return 0;  // nothing is reported there
    default:
      return -FI_EINVAL;
  }
}

int FiEndpoint::bind_counter(FiCounter& counter, uint64_t flags) {
  if ((flags & ~kAllWays) != 0 || flags == 0) {
    return -FI_EBADFLAGS;
  }
  const std::pair<uint64_t, FiCounter**> places[] = {{FI_SEND, &bound_.sends},
                                                     {FI_RECV, &bound_.receives},
                                                     {FI_READ, &bound_.reads},
                                                     {FI_WRITE, &bound_.writes},
                                                     {FI_REMOTE_READ, &bound_.remote_reads},
                                                     {FI_REMOTE_WRITE, &bound_.remote_writes}};
  for (const auto& [way, place] : places) {
    *place = (flags & way) != 0 ? &counter : *place;
  }
  uses_.emplace_back(counter);
  return 0;
}

int FiEndpoint::bind_queue(CompletionQueue& queue, uint64_t flags) {
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0 ||
      (flags & (FI_TRANSMIT | FI_RECV)) == 0) {
    return -FI_EBADFLAGS;
  }
  if ((flags & FI_TRANSMIT) != 0) {
    bound_.tx = &queue;
    bound_.tx_selective = selective;
  }
  if ((flags & FI_RECV) != 0) {
    bound_.rx = &queue;
    bound_.rx_selective = selective;
  }
  uses_.emplace_back(queue);
  return 0;
}

int FiEndpoint::enable() {
  if (enabled_) {
    return -FI_EOPBADSTATE;
  }
  const bool messages = (caps_ & (FI_MSG | FI_TAGGED)) != 0;
  const bool sends = messages && (caps_ & FI_SEND) != 0 && bound_.sends == nullptr;
  const bool receives = messages && (caps_ & FI_RECV) != 0 && bound_.receives == nullptr;
  const bool asks =
      (caps_ & (FI_READ | FI_WRITE)) != 0 && bound_.reads == nullptr && bound_.writes == nullptr;
  if (bound_.av == nullptr) {
    return -FI_ENOAV;
  }
  if (((sends || asks) && bound_.tx == nullptr) || (receives && bound_.rx == nullptr)) {
    return -FI_ENOCQ;
  }
  const auto number = static_cast<uint32_t>(number_);
  const uint32_t first = number * kContextsOfEndpoint;
  // Peers that find the service at once are served after this call, which holds the Guard.
  int rc = serve();
  rc = rc == 0 && (caps_ & FI_TAGGED) != 0 ? tagged_.enable(domain_, first) : rc;
  rc = rc == 0 && (caps_ & FI_MSG) != 0 ? plain_.enable(domain_, first) : rc;
  const bool remote = (caps_ & (FI_RMA | FI_ATOMIC)) != 0;
  rc = rc == 0 && remote ? remote_.enable(first) : rc;
  enabled_ = rc == 0;
  if (rc != 0) {
    served_.reset();
    return rc;
  }
  const Calls none = refused_calls<-FI_EOPNOTSUPP>();  // without the capability
  fid_ep::msg = (caps_ & FI_MSG) != 0 ? &plain_ops : none.msg;
  fid_ep::tagged = (caps_ & FI_TAGGED) != 0 ? &tagged_ops : none.tagged;
  fid_ep::rma = (caps_ & FI_RMA) != 0 ? &rma_ops : none.rma;
  fid_ep::atomic = (caps_ & FI_ATOMIC) != 0 ? &atomic_ops : none.atomic;
  return 0;
}

ssize_t FiEndpoint::cancel(void* context) {
  const ssize_t rc = tagged_.cancel(context);
  return rc == -FI_ENOENT ? plain_.cancel(context) : rc;
}

size_t* FiEndpoint::option(int level, int name) {
  return level == FI_OPT_ENDPOINT && name == FI_OPT_MIN_MULTI_RECV ? &bound_.min_multi : nullptr;
}

int FiEndpoint::get_option(int level, int name, void* out, size_t* bytes) {
  const size_t* const value = option(level, name);
  if (value == nullptr) {
    return -FI_ENOPROTOOPT;
  }
  const bool fits = *bytes >= sizeof(*value);
  *bytes = sizeof(*value);
  if (fits) {
    std::memcpy(out, value, sizeof(*value));
  }
  return fits ? 0 : -FI_ETOOSMALL;
}

int FiEndpoint::set_option(int level, int name, const void* in, size_t bytes) {
  size_t* const value = option(level, name);
  if (value == nullptr || bytes != sizeof(*value)) {
    return value == nullptr ? -FI_ENOPROTOOPT : -FI_EINVAL;
  }
  std::memcpy(value, in, sizeof(*value));
  return 0;
}

int FiEndpoint::name(void* out, size_t* bytes) const {
  if (!enabled_) {
    return -FI_EOPBADSTATE;
  }
  const size_t room = *bytes;
  *bytes = domain_.has_sockets() ? sizeof(sockaddr_in) : sizeof(Name);
  if (room < *bytes || out == nullptr) {
    return -FI_ETOOSMALL;
  }
  if (domain_.has_sockets()) {
    const sockaddr_in socket = make_socket(own_ipv4_, service_);
    std::memcpy(out, &socket, sizeof(socket));
    return 0;
  }
  Name name{};
  if (!domain_.make_name(static_cast<uint32_t>(number_), &name)) {
    return -FI_EOTHER;
  }
  std::memcpy(out, &name, sizeof(name));
  return 0;
}

}  // namespace rio::ofi
