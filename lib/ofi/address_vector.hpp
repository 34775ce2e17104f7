/// @file
/// fi_av_open(): the names of peers, by number. FI_AV_MAP and FI_AV_TABLE behave alike.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/event_queue.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/socket_address.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

class AddressVector : public fid_av, public Used {
 public:
  using Fid = fid_av;

  /// @param has_events FI_EVENT: insertions are reported in an event queue.
  AddressVector(Domain& domain, bool has_events, void* user_context);
  ~AddressVector();

  /// Like fi_av_bind(). Under a Guard.
  [[nodiscard]] int bind(struct fid& what, uint64_t flags);
  [[nodiscard]] bool has_events() const { return has_events_; }
  /// Under a Guard. As fi_av_insert(). @param names `count` of them in the domain's format: each a
  /// Name or a name of a service, or a sockaddr_in. @param errors null, or one for each. @return
  /// how many were accepted; in our own format without `errors`, if none was, the error of the
  /// first.
  int insert(const void* names, size_t count, fi_addr_t* out, int* errors);
  /// Under a Guard. insert() of a vector with FI_EVENT. @return 0; -FI_ENOEQ.
  int insert_with_events(const void* names, size_t count, fi_addr_t* out, void* context);
  /// Under a Guard. @return 0, -FI_EINVAL.
  int remove(const fi_addr_t* addresses, size_t count);
  /// Under a Guard, in a user's call. If find() has no peer: look up the endpoint that serves a
  /// row's service. @return 0; -FI_ECONNREFUSED: none does; -FI_EHOSTUNREACH: another machine's
  /// row; -FI_ECONNRESET: a process named later has its destID; -FI_EINVAL: no such row.
  [[nodiscard]] int find_slow(fi_addr_t address, tag::Address* out);
  /// Under a Guard. An operation with a peer has failed. If another endpoint serves the row's
  /// service now, or none does, the next use looks it up again. @param peer context of tagged
  /// messages.
  void check_again(tag::Address peer);
  /// Like fi_av_lookup().
  int look_up(fi_addr_t address, void* out, size_t* bytes) const;

  /// Hot. Context of tagged messages; kNoPeer: none. @param address any.
  [[nodiscard]] tag::Address find(fi_addr_t address) const {
    return address < peers_.size() ? peers_[address] : kNoPeer;
  }
  /// The row of a message's sender. @param source context of tagged messages. @return
  /// FI_ADDR_NOTAVAIL: the sender was not inserted.
  [[nodiscard]] fi_addr_t number_of(tag::Address source) {
    const auto found = numbers_.find(source);
    if (found == numbers_.end()) {
      return places_.empty() ? FI_ADDR_NOTAVAIL : number_of_slow(source);
    }
    return found->second;
  }

  [[nodiscard]] Domain& domain() { return domain_; }

  /// Under a Guard. Whether a row belongs to this process and is marked as gone. @param owner the
  /// process, as in its Name.
  [[nodiscard]] bool has_gone(uint32_t owner, uint32_t dest_id) const;
  /// Under a Guard. Mark all rows with this destID as gone: calls with them return
  /// -FI_ECONNRESET.
  void lose(uint32_t dest_id);

  /// Stands for "no peer": no context has this number.
  static constexpr tag::Address kNoPeer = tag::kAnySource;

 private:
  Domain& domain_;
  Use use_{domain_};
  /// A row that was inserted as FI_SOCKADDR_IN.
  struct Place {
    sockaddr_in address{};  // family 0: an empty row
    bool is_told = false;   // the log has reported why it is not reached
  };

  void hear();
  void add_row();
  void drop_row();
  [[nodiscard]] bool has_row(fi_addr_t address) const;
  [[nodiscard]] bool is_place(size_t row) const;
  [[nodiscard]] size_t address_bytes() const;
  [[nodiscard]] int read(const void* bytes, Name* out);
  [[nodiscard]] int insert_name(const void* bytes);
  [[nodiscard]] int insert_place(const void* bytes);
  [[nodiscard]] int fill_row(size_t row, const Name& name, tag::Address address);
  [[nodiscard]] int find_server(size_t row, Name* name, tag::Address* out);
  void tell_unreached(Place& place, int rc);
  [[nodiscard]] fi_addr_t number_of_slow(tag::Address source);
  [[nodiscard]] int find_out(const Name& name, tag::Address* out);
  void forget_refusals(tag::Address first);

  // Columns of one table. A peer is gone once another process was inserted with its destID.
  std::vector<tag::Address> peers_;  // kNoPeer: removed, gone, or a place not used yet
  std::vector<Name> names_;          // as inserted, or the name of a service's endpoint
  std::vector<tag::Address> gone_;   // former address of a peer that is gone; else kNoPeer
  std::vector<Place> places_;        // only of domains with FI_SOCKADDR_IN; else empty
  std::unordered_map<tag::Address, fi_addr_t> numbers_;
  // Senders in no row, with the process (Link::instance) for which that was found.
  std::unordered_map<tag::Address, uint32_t> strangers_;
  bool has_events_;
  EventQueue* events_ = nullptr;
  Use events_use_;
};

int open_address_vector(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* user_context);

}  // namespace rio::ofi
