/// @file
/// fi_av_open(): the names of peers, by number. Both kinds are the same here.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/name.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

class AddressVector : public fid_av, public Used {
 public:
  using Fid = fid_av;

  AddressVector(Domain& domain, void* user_context);

  /// Under a Guard. As fi_av_insert(). @param names `count` of them, each a Name or a name of a
  /// service. @param errors null, or one for each. @return how many were accepted; without
  /// `errors`, if none was, the error of the first.
  int insert(const void* names, size_t count, fi_addr_t* out, int* errors);
  /// Under a Guard. @return 0, -FI_EINVAL.
  int remove(const fi_addr_t* addresses, size_t count);
  /// Why find() has no peer for an address. @return -FI_ECONNRESET: a process named later has its
  /// destID; else -FI_EINVAL.
  [[nodiscard]] int refusal(fi_addr_t address) const;
  /// As fi_av_lookup().
  int look_up(fi_addr_t address, void* out, size_t* bytes) const;

  /// Hot. Context of tagged messages; kNobody: none. @param address any.
  [[nodiscard]] tag::Address find(fi_addr_t address) const {
    return address < peers_.size() ? peers_[address] : kNobody;
  }
  /// Who sent. @param source context of tagged messages. @return FI_ADDR_NOTAVAIL: nobody inserted
  /// him.
  [[nodiscard]] fi_addr_t number_of(tag::Address source) const {
    const auto found = numbers_.find(source);
    return found == numbers_.end() ? FI_ADDR_NOTAVAIL : found->second;
  }

  [[nodiscard]] Domain& domain() { return domain_; }

  /// No peer: its context is beyond any.
  static constexpr tag::Address kNobody = tag::kAnySource;

 private:
  Domain& domain_;
  Use use_{domain_};
  [[nodiscard]] int read(const void* bytes, Name* out);
  [[nodiscard]] int find_out(const Name& name, tag::Address* out);
  void forget_refusals(tag::Address first);
  [[nodiscard]] bool take_place(uint32_t owner, uint32_t dest_id);

  // Columns of one table. A peer is gone once another process was inserted with its destID.
  std::vector<tag::Address> peers_;  // kNobody: removed, or gone
  std::vector<Name> names_;          // as they were inserted
  std::vector<tag::Address> gone_;   // former address of a peer that is gone; else kNobody
  std::unordered_map<tag::Address, fi_addr_t> numbers_;
  std::unordered_map<uint32_t, uint32_t> owners_;  // by destID: Name::owner of the name inserted
                                                   // last
};

int open_address_vector(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* user_context);

}  // namespace rio::ofi
