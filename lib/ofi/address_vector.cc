#include "lib/ofi/address_vector.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/msg/waiting.hpp"
#include "lib/ofi/resolve.hpp"
#include "lib/ofi/service.hpp"

namespace rio::ofi {
namespace {

int insert_names(fid_av* av, const void* names, size_t count, fi_addr_t* out, uint64_t flags,
                 void* context) {
  return no_throw([&] {
    AddressVector& self = of<AddressVector>(av);
    const bool tells = (flags & FI_SYNC_ERR) != 0;
    if ((flags & ~(FI_SYNC_ERR | FI_MORE)) != 0) {
      return -FI_EBADFLAGS;
    }
    if ((names == nullptr && count != 0) || (tells && context == nullptr)) {
      return -FI_EINVAL;
    }
    const msg::Guard guard(self.domain().port());
    return self.insert(names, count, out, tells ? static_cast<int*>(context) : nullptr);
  });
}
int insert_service(fid_av* av, const char* node, const char* service, fi_addr_t* out,
                   uint64_t flags, void* context) {
  Name name{};
  const int rc = no_throw([&] {
    return node == nullptr && service == nullptr
               ? -FI_EINVAL
               : resolve({node, service, (flags & FI_NUMERICHOST) != 0},
                         of<AddressVector>(av).domain().fabric(), true, &name);
  });
  return rc == 0 ? insert_names(av, &name, 1, out, flags & ~FI_NUMERICHOST, context) : rc;
}
int no_insert_symmetric(fid_av*, const char*, size_t, const char*, size_t, fi_addr_t*, uint64_t,
                        void*) {
  return -FI_ENOSYS;
}
int remove_names(fid_av* av, fi_addr_t* addresses, size_t count, uint64_t) {
  if (addresses == nullptr && count != 0) {
    return -FI_EINVAL;
  }
  AddressVector& self = of<AddressVector>(av);
  const msg::Guard guard(self.domain().port());
  return self.remove(addresses, count);
}
int look_up(fid_av* av, fi_addr_t address, void* out, size_t* bytes) {
  AddressVector& self = of<AddressVector>(av);
  const msg::Guard guard(self.domain().port());
  return self.look_up(address, out, bytes);
}
const char* to_text(fid_av*, const void* bytes, char* out, size_t* count) {
  Name name{};
  if (bytes != nullptr) {
    std::memcpy(&name, bytes, sizeof(name));
  }
  const bool is_one = read_address(&name, name.fabric, &name) == 0;
  const int length =
      is_one ? print_address(name, out, *count) : std::snprintf(out, *count, "rio://?");
  *count = static_cast<size_t>(length) + 1;
  return out;
}

fi_ops object_ops = {
    sizeof(fi_ops), close_object<AddressVector>, no_bind, no_control, no_ops_open, nullptr,
    nullptr};
// Releases of libfabric have more calls, or fewer.
fi_ops_av vector_ops = [] {
  fi_ops_av ops{};
  ops.size = sizeof(ops);
  ops.insert = insert_names;
  ops.insertsvc = insert_service;
  ops.insertsym = no_insert_symmetric;
  ops.remove = remove_names;
  ops.lookup = look_up;
  ops.straddr = to_text;
  return ops;
}();

}  // namespace

AddressVector::AddressVector(Domain& domain, void* user_context)
    : fid_av{{FI_CLASS_AV, user_context, &object_ops}, &vector_ops}, domain_(domain) {}

int AddressVector::insert(const void* names, size_t count, fi_addr_t* out, int* errors) {
  constexpr uint32_t kLooksMax = 64;
  int inserted = 0;
  int first_error = 0;
  // A name may have the number of a closed endpoint. The news of that one's end has arrived:
  // process it now, so that it ends the closed one's operations only.
  for (uint32_t looks = 0; domain_.port().progress() != 0 && looks < kLooksMax;) {
    ++looks;
  }
  domain_.work();
  peers_.reserve(peers_.size() + count);
  names_.reserve(peers_.size() + count);
  gone_.reserve(peers_.size() + count);
  for (size_t i = 0; i < count; ++i) {
    tag::Address address = kNobody;
    Name name{};
    int rc = read(static_cast<const uint8_t*>(names) + i * sizeof(Name), &name);
    if (rc == -EHOSTUNREACH) {
      pmd::log_error(
          "rio: a peer is on another fabric; start all with the same FI_RIO_FABRIC or "
          "FI_RIO_CARD");
    }
    rc = rc == 0 ? find_out(name, &address) : rc;
    first_error = first_error == 0 ? rc : first_error;
    const bool is_gone = rc == 0 && !take_place(name.owner, tag::dest_id_of(address));
    if (rc == 0) {
      ++inserted;
    }
    if (rc == 0 && !is_gone) {
      numbers_.try_emplace(address, peers_.size());
      forget_refusals(address);
    }
    if (out != nullptr) {
      out[i] = rc == 0 ? peers_.size() : FI_ADDR_NOTAVAIL;
    }
    if (errors != nullptr) {
      errors[i] = -rc;
    }
    // A table has a row for each of them.
    if (rc == 0 || out == nullptr) {
      peers_.push_back(is_gone ? kNobody : address);
      names_.push_back(name);
      gone_.push_back(is_gone ? address : kNobody);
    }
  }
  return inserted == 0 && errors == nullptr ? first_error : inserted;
}

int AddressVector::read(const void* bytes, Name* out) {
  Name name{};
  int rc = read_address(bytes, domain_.fabric(), &name);
  if (rc == 0 && is_service(name)) {
    const uint16_t number = service_of(name);
    rc = number == 0 ? -EINVAL : find_service(domain_.fabric(), number, &name);
    rc = rc == 0 ? read_name(&name, domain_.fabric(), &name) : rc;
    if (rc != 0) {
      pmd::log_error(
          "rio: no endpoint of this user serves %u on this fabric and machine; start "
          "the server first, and with the same FI_RIO_FABRIC or FI_RIO_CARD",
          unsigned{number});
    }
  }
  *out = name;
  return rc;
}

/// Forget that a peer's endpoint refused messages. If it does not exist, the next message shows it.
/// @param first context of the endpoint.
void AddressVector::forget_refusals(tag::Address first) {
  msg::Port& port = domain_.port();
  if (port.stats().refused == 0) {
    return;
  }
  constexpr uint64_t kAll = (1ull << kContextsOfEndpoint) - 1;
  for (uint32_t i = 0; i < port.link_count(); ++i) {
    if (port.link_at(i).dest_id() == tag::dest_id_of(first)) {
      port.link_at(i).refused &= ~(kAll << tag::context_of(first));
    }
  }
}

/// Where messages to a peer go. @return 0, -EADDRINUSE: he has our destID; as Port::reach().
int AddressVector::find_out(const Name& name, tag::Address* out) {
  uint32_t dest_id = name.dest_id;
  if (name.address[0] != 0) {
    const int rc = domain_.port().reach(name.address, &dest_id);
    if (rc == -ENOSPC) {
      pmd::log_error("rio: no destID left for %s; use several fabrics", name.address);
    }
    if (rc != 0) {
      return rc;
    }
  }
  const bool is_known = name.owner != 0;  // a name that a user typed has no owner
  if (dest_id == domain_.port().dest_id() && is_known && name.owner != domain_.port().instance()) {
    pmd::log_error(
        "rio: destID %u is claimed by a peer, too; give each its own: FI_RIO_DESTID, or id= in "
        "FI_RIO_CARD",
        dest_id);
    return -EADDRINUSE;
  }
  *out = context_of(name, dest_id);
  return 0;
}

/// Note the owner of an inserted name. Of several processes with one destID, the one inserted last
/// has it; the others are gone. @return false: this one is gone.
bool AddressVector::take_place(uint32_t owner, uint32_t dest_id) {
  if (owner == 0) {
    return true;  // a name that a user typed has no owner
  }
  const auto [last, is_first] = owners_.try_emplace(dest_id, owner);
  const msg::Link* const link = domain_.port().known_link(dest_id);
  const bool spoke_to_another = link != nullptr && link->instance != 0 && link->instance != owner;
  if (is_first ? !spoke_to_another : last->second == owner) {
    return true;
  }
  for (size_t row = 0; row < names_.size(); ++row) {
    if (gone_[row] != kNobody && tag::dest_id_of(gone_[row]) == dest_id &&
        names_[row].owner == owner) {
      return false;
    }
  }
  last->second = owner;
  for (size_t row = 0; row < peers_.size(); ++row) {
    if (peers_[row] != kNobody && tag::dest_id_of(peers_[row]) == dest_id) {
      gone_[row] = std::exchange(peers_[row], kNobody);
      numbers_.erase(gone_[row]);
    }
  }
  domain_.meet_instance(dest_id, owner);
  return true;
}

int AddressVector::remove(const fi_addr_t* addresses, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const tag::Address gone = find(addresses[i]);
    if (gone == kNobody && refusal(addresses[i]) == -FI_EINVAL) {
      return -FI_EINVAL;
    }
    if (std::exchange(gone_[addresses[i]], kNobody) != kNobody) {
      continue;
    }
    peers_[addresses[i]] = kNobody;
    numbers_.erase(gone);
    if (const auto again = std::find(peers_.begin(), peers_.end(), gone); again != peers_.end()) {
      numbers_.emplace(gone, static_cast<fi_addr_t>(again - peers_.begin()));
    }
  }
  return 0;
}

int AddressVector::refusal(fi_addr_t address) const {
  return address < gone_.size() && gone_[address] != kNobody ? -FI_ECONNRESET : -FI_EINVAL;
}

int AddressVector::look_up(fi_addr_t address, void* out, size_t* bytes) const {
  if (find(address) == kNobody && refusal(address) == -FI_EINVAL) {
    return -FI_EINVAL;
  }
  const Name& name = names_[address];
  std::memcpy(out, &name, std::min(*bytes, sizeof(name)));
  *bytes = sizeof(name);
  return 0;
}

int open_address_vector(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* user_context) {
  return no_throw([&] {
    if (attr != nullptr &&
        (attr->name != nullptr || attr->rx_ctx_bits != 0 || (attr->flags & ~FI_SYMMETRIC) != 0)) {
      return -FI_ENOSYS;
    }
    *out = new AddressVector(of<Domain>(domain), user_context);
    return 0;
  });
}

}  // namespace rio::ofi
