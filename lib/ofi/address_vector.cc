#include "lib/ofi/address_vector.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/ofi/service.hpp"

namespace rio::ofi {
namespace {

int insert_service(fid_av* av, const char* node, const char* service, fi_addr_t* out,
                   uint64_t flags, void* context) {
  Name name{};
  sockaddr_in socket{};
  const Domain& domain = of<AddressVector>(av).domain();
  const int rc = no_throw([&] {
    const NodeService place = {node, service, (flags & FI_NUMERICHOST) != 0};
    return node == nullptr && service == nullptr ? -FI_EINVAL
           : domain.has_sockets() ? resolve_socket(place, domain.fabric(), true, &socket)
                                  : resolve(place, domain.fabric(), true, &name);
  });
  const void* const bytes = domain.has_sockets() ? static_cast<const void*>(&socket) : &name;
  return rc == 0 ? fi_av_insert(av, bytes, 1, out, flags & ~FI_NUMERICHOST, context) : rc;
}
const char* to_text(fid_av* av, const void* bytes, char* out, size_t* count) {
  int length = 0;
  if (of<AddressVector>(av).domain().has_sockets()) {
    sockaddr_in socket{};
    const bool is_one = bytes != nullptr && read_socket(bytes, &socket) == 0;
    length = is_one ? print_socket(socket, out, *count)
                    : std::snprintf(out, *count, "fi_sockaddr_in://?");
  } else {
    Name name{};
    if (bytes != nullptr) {
      std::memcpy(&name, bytes, sizeof(name));
    }
    const bool is_one = read_address(&name, name.fabric, &name) == 0;
    length = is_one ? print_address(name, out, *count) : std::snprintf(out, *count, "rio://?");
  }
  *count = static_cast<size_t>(length) + 1;
  return out;
}

using Self = AddressVector;
fi_ops object_ops = object_calls(close_object<Self>, kGuarded<Self, &Self::bind>);
// Other releases of libfabric have more calls, or fewer.
fi_ops_av vector_ops = [] {
  fi_ops_av ops{};
  ops.size = sizeof(ops);
  ops.insert = kNoThrow<Self, &Self::insert>;
  ops.insertsvc = insert_service;
  ops.insertsym = kNoCall;
  ops.remove = kGuarded<Self, &Self::remove>;
  ops.lookup = kGuarded<Self, &Self::look_up>;
  ops.straddr = to_text;
  return ops;
}();

}  // namespace

AddressVector::AddressVector(Domain& domain, bool has_events, void* user_context)
    : fid_av{{FI_CLASS_AV, user_context, &object_ops}, &vector_ops},
      domain_(domain),
      has_events_(has_events) {
  const msg::Guard guard(domain_.port());
  domain_.add(*this);
}

AddressVector::~AddressVector() {
  const msg::Guard guard(domain_.port());
  domain_.remove(*this);
}

int AddressVector::bind(struct fid* what, uint64_t flags) {
  if (what->fclass != FI_CLASS_EQ || flags != 0) {
    return what->fclass != FI_CLASS_EQ ? -FI_EINVAL : -FI_EBADFLAGS;
  }
  events_ = &of<EventQueue>(what);
  events_use_ = Use(*events_);
  return 0;
}

/// A new name may reuse the endpoint number of a closed endpoint. The card has already reported
/// that end: process the report now, so that it ends the closed endpoint's operations only.
void AddressVector::hear() {
  constexpr uint32_t kLooksMax = 64;
  for (uint32_t looks = 0; domain_.port().progress() != 0 && looks < kLooksMax;) {
    ++looks;
  }
  domain_.work();
}

bool AddressVector::is_gone(fi_addr_t address) const {
  return address < rows_.size() && rows_[address].gone != kNoPeer;
}

bool AddressVector::is_place(fi_addr_t address) const {
  return address < rows_.size() && rows_[address].port != 0;
}

bool AddressVector::has_row(fi_addr_t address) const {
  return find(address) != kNoPeer || is_gone(address) || is_place(address);
}

size_t AddressVector::address_bytes() const {
  return domain_.has_sockets() ? sizeof(sockaddr_in) : sizeof(Name);
}

int AddressVector::insert(const void* names, size_t count, fi_addr_t* out, uint64_t flags,
                          void* context) {
  const bool tells = (flags & FI_SYNC_ERR) != 0;
  if ((flags & ~(FI_SYNC_ERR | FI_MORE)) != 0 || (tells && has_events_)) {
    return -FI_EBADFLAGS;
  }
  if ((names == nullptr && count != 0) || (tells && context == nullptr)) {
    return -FI_EINVAL;
  }
  return has_events_ ? insert_with_events(names, count, out, context)
                     : insert_rows(names, count, out, tells ? static_cast<int*>(context) : nullptr);
}

int AddressVector::insert_rows(const void* names, size_t count, fi_addr_t* out, int* errors) {
  int inserted = 0;
  int first_error = 0;
  hear();
  peers_.reserve(peers_.size() + count);
  rows_.reserve(peers_.size() + count);
  strangers_.clear();
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* const at = static_cast<const uint8_t*>(names) + i * address_bytes();
    peers_.push_back(kNoPeer);
    rows_.emplace_back();
    const int rc = domain_.has_sockets() ? insert_place(at) : insert_name(at);
    first_error = first_error == 0 ? rc : first_error;
    inserted += rc == 0 ? 1 : 0;
    if (out != nullptr) {
      out[i] = rc == 0 ? peers_.size() - 1 : FI_ADDR_NOTAVAIL;
    }
    if (errors != nullptr) {
      errors[i] = -rc;
    }
    // A caller that gets no row numbers counts rows itself: for it a refused address keeps its row.
    if (rc != 0 && out != nullptr) {
      peers_.pop_back();
      rows_.pop_back();
    }
  }
  // Programs that ask for this format expect the number, as other providers return it.
  const bool says_why = inserted == 0 && errors == nullptr && !domain_.has_sockets();
  return says_why ? first_error : inserted;
}

int AddressVector::insert_with_events(const void* names, size_t count, fi_addr_t* out,
                                      void* context) {
  if (events_ == nullptr) {
    return -FI_ENOEQ;
  }
  std::vector<int> errors(count);
  fi_eq_entry done{};
  done.fid = &fid;
  done.context = context;
  done.data = static_cast<uint64_t>(insert_rows(names, count, out, errors.data()));
  for (size_t i = 0; i < count; ++i) {
    if (errors[i] != 0) {
      fi_eq_err_entry error{};
      error.fid = done.fid;
      error.context = context;
      error.data = i;
      error.err = errors[i];
      events_->write(0, &error, sizeof(error), true);
    }
  }
  events_->write(FI_AV_COMPLETE, &done, sizeof(done));
  return 0;
}

/// Read a name into the last row. @param bytes foreign.
int AddressVector::insert_name(const void* bytes) {
  Name name{};
  tag::Address address = kNoPeer;
  int rc = read_address(bytes, domain_.fabric(), &name);
  if (rc == 0 && is_service(name)) {
    const uint16_t number = service_of(name);
    rc = number == 0 ? -EINVAL : find_service(domain_.fabric(), number, &name);
    rc = rc == 0 ? read_name(&name, domain_.fabric(), &name) : rc;
    if (rc != 0) {
      base::log_error(
          "rio: no endpoint of this user serves %u on this fabric and machine; start "
          "the server first, and with the same FI_RIO_FABRIC or FI_RIO_CARD",
          unsigned{number});
    }
  }
  if (rc == -EHOSTUNREACH) {
    base::log_error(
        "rio: a peer is on another fabric; start all with the same FI_RIO_FABRIC or "
        "FI_RIO_CARD");
  }
  rc = rc == 0 ? find_out(name, &address) : rc;
  if (rc == 0) {
    static_cast<void>(fill_row(peers_.size() - 1, name, address));  // a peer that is gone has a
                                                                    // row, too
  }
  return rc;
}

/// Read a place into the last row. Its endpoint is looked up when the address is used, since
/// programs insert addresses of peers that have not started. @param bytes foreign.
int AddressVector::insert_place(const void* bytes) {
  sockaddr_in address{};
  const int rc = read_socket(bytes, &address);
  if (rc != 0 || address.sin_port == 0) {
    base::log_error(
        "rio: an address is refused: this domain has FI_SOCKADDR_IN, the IPv4 address of one "
        "machine and a port above 0");
    return -EINVAL;
  }
  rows_.back().ip = address.sin_addr;
  rows_.back().port = ntohs(address.sin_port);
  return 0;
}

/// Set a row's peer. @return 0, -ECONNRESET: the peer is gone.
int AddressVector::fill_row(size_t row, const Name& name, tag::Address address) {
  rows_[row].name = name;
  rows_[row].gone = kNoPeer;
  if (!domain_.take_place(name.owner, tag::dest_id_of(address))) {
    rows_[row].gone = address;
    return -ECONNRESET;
  }
  peers_[row] = address;
  numbers_.try_emplace(address, row);
  forget_refusals(address);
  return 0;
}

/// Find the endpoint that serves a place now.
int AddressVector::find_server(size_t row, Name* name, tag::Address* out) {
  if (!is_own(rows_[row].ip)) {
    return -EHOSTUNREACH;
  }
  int rc = find_service(domain_.fabric(), rows_[row].port, name);
  rc = rc == 0 ? read_name(name, domain_.fabric(), name) : rc;
  return rc == 0 ? find_out(*name, out) : rc;
}

void AddressVector::tell_unreached(Row& place, int rc) {
  if (std::exchange(place.is_told, true)) {
    return;
  }
  char text[64];
  print_socket(make_socket(place.ip, place.port), text, sizeof(text));
  if (rc == -EHOSTUNREACH) {
    base::log_error(
        "rio: %s is on another machine; FI_SOCKADDR_IN ends at the machine: leave addr_format "
        "FI_FORMAT_UNSPEC, and exchange the names that fi_getname() gives",
        text);
  } else if (rc == -ECONNREFUSED) {
    base::log_error(
        "rio: no endpoint of this user serves %s on this fabric; start the server first, and with "
        "the same FI_RIO_FABRIC or FI_RIO_CARD",
        text);
  }
}

int AddressVector::find_slow(fi_addr_t address, tag::Address* out) {
  return no_throw([&] {
    if (!is_place(address)) {
      *out = kNoPeer;
      return is_gone(address) ? -FI_ECONNRESET : -FI_EINVAL;
    }
    hear();
    Name name{};
    tag::Address found = kNoPeer;
    int rc = find_server(address, &name, &found);
    rc = rc == 0 ? fill_row(address, name, found) : rc;
    if (rc != 0) {
      tell_unreached(rows_[address], rc);
      return rc;
    }
    rows_[address].is_told = false;
    *out = found;
    return 0;
  });
}

/// Find the row of a sender that serves a place. It has served the place since before it could
/// send, so one look for each sender is enough.
[[gnu::noinline]] fi_addr_t AddressVector::number_of_slow(tag::Address source) {
  constexpr size_t kStrangersMax = 4096;
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  const int rc = no_throw([&] {
    const msg::Link* const link = domain_.port().known_link(tag::dest_id_of(source));
    const uint32_t instance = link == nullptr ? 0 : link->instance;
    const auto known = strangers_.find(source);
    if (known != strangers_.end() && known->second == instance) {
      return 0;
    }
    for (size_t row = 0; row < rows_.size(); ++row) {
      Name name{};
      tag::Address found = kNoPeer;
      if (peers_[row] == kNoPeer && is_place(row) && find_server(row, &name, &found) == 0 &&
          found == source && fill_row(row, name, found) == 0) {
        number = row;
        return 0;
      }
    }
    if (strangers_.size() >= kStrangersMax) {
      strangers_.clear();
    }
    strangers_[source] = instance;
    return 0;
  });
  return rc == 0 ? number : FI_ADDR_NOTAVAIL;
}

void AddressVector::check_again(tag::Address peer) {
  for (size_t row = 0; domain_.has_sockets() && row < rows_.size(); ++row) {
    Name now{};
    if (peers_[row] == kNoPeer || peers_[row] != peer ||
        (find_service(domain_.fabric(), rows_[row].port, &now) == 0 &&
         std::memcmp(&now, &rows_[row].name, sizeof(now)) == 0)) {
      continue;
    }
    peers_[row] = kNoPeer;
    numbers_.erase(peer);
  }
}

/// Forget that a peer's endpoint refused messages. If it does not exist, the next message shows it.
/// @param first context of the endpoint.
void AddressVector::forget_refusals(tag::Address first) {
  constexpr uint64_t kAll = (1ull << kContextsOfEndpoint) - 1;
  if (msg::Link* const link = domain_.port().known_link(tag::dest_id_of(first)); link != nullptr) {
    link->theirs.refused &= ~(kAll << tag::context_of(first));
  }
}

/// Find where messages to a peer go. @return as Domain::reach().
int AddressVector::find_out(const Name& name, tag::Address* out) {
  uint32_t dest_id = 0;
  const int rc = domain_.reach(name, &dest_id);
  if (rc == 0) {
    *out = context_of(name, dest_id);
  }
  return rc;
}

bool AddressVector::has_gone(uint32_t owner, uint32_t dest_id) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.gone != kNoPeer && tag::dest_id_of(row.gone) == dest_id && row.name.owner == owner;
  });
}

void AddressVector::lose(uint32_t dest_id) {
  for (size_t row = 0; row < peers_.size(); ++row) {
    if (peers_[row] != kNoPeer && tag::dest_id_of(peers_[row]) == dest_id) {
      rows_[row].gone = std::exchange(peers_[row], kNoPeer);
      numbers_.erase(rows_[row].gone);
    }
  }
}

int AddressVector::remove(fi_addr_t* addresses, size_t count, uint64_t) {
  if (addresses == nullptr && count != 0) {
    return -FI_EINVAL;
  }
  for (size_t i = 0; i < count; ++i) {
    const tag::Address gone = find(addresses[i]);
    if (!has_row(addresses[i])) {
      return -FI_EINVAL;
    }
    rows_[addresses[i]] = {};
    if (gone == kNoPeer) {
      continue;
    }
    peers_[addresses[i]] = kNoPeer;
    numbers_.erase(gone);
    if (const auto again = std::find(peers_.begin(), peers_.end(), gone); again != peers_.end()) {
      numbers_.emplace(gone, static_cast<fi_addr_t>(again - peers_.begin()));
    }
  }
  return 0;
}

int AddressVector::look_up(fi_addr_t address, void* out, size_t* bytes) const {
  if (!has_row(address)) {
    return -FI_EINVAL;
  }
  const Row& row = rows_[address];
  const sockaddr_in socket = make_socket(row.ip, row.port);
  const void* const from = is_place(address) ? static_cast<const void*>(&socket) : &row.name;
  std::memcpy(out, from, std::min(*bytes, address_bytes()));
  *bytes = address_bytes();
  return 0;
}

int open_address_vector(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* user_context) {
  return no_throw([&] {
    if (attr != nullptr && (attr->name != nullptr || attr->rx_ctx_bits != 0 ||
                            (attr->flags & ~(FI_SYMMETRIC | FI_EVENT)) != 0)) {
      return -FI_ENOSYS;
    }
    const bool has_events = attr != nullptr && (attr->flags & FI_EVENT) != 0;
    *out = new AddressVector(of<Domain>(domain), has_events, user_context);
    if (attr != nullptr && attr->type == FI_AV_UNSPEC) {
      attr->type = FI_AV_TABLE;
    }
    return 0;
  });
}

}  // namespace rio::ofi
