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
#include "lib/ofi/resolve.hpp"
#include "lib/tag/request.hpp"

namespace rio::ofi {

class AddressVector : public fid_av, public Used {
 public:
  using Fid = fid_av;

  /// @param has_events FI_EVENT: insertions are reported in an event queue.
  AddressVector(Domain& domain, bool has_events, void* user_context);
  ~AddressVector();

  /// Like fi_av_bind(). Under a Guard.
  [[nodiscard]] int bind(struct fid* what, uint64_t flags);
  /// Under a Guard. As fi_av_insert(). @param names `count` of them in the domain's format: each a
  /// Name or a name of a service, or a sockaddr_in. @param context with FI_SYNC_ERR an error for
  /// each. @return how many were accepted; in our own format without FI_SYNC_ERR, if none was, the
  /// error of the first; with FI_EVENT 0 or -FI_ENOEQ; -FI_EBADFLAGS, -FI_EINVAL.
  int insert(const void* names, size_t count, fi_addr_t* out, uint64_t flags, void* context);
  /// Under a Guard. As fi_av_remove(). @return 0, -FI_EINVAL.
  int remove(fi_addr_t* addresses, size_t count, uint64_t flags);
  /// Under a Guard, in a user's call. If find() has no peer: look up the endpoint that serves a
  /// row's service. @return 0; -FI_ECONNREFUSED: none does; -FI_EHOSTUNREACH: another machine's
  /// row; -FI_ECONNRESET: a process named later has its destID; -FI_EINVAL: no such row.
  [[nodiscard]] int find_slow(fi_addr_t address, tag::Address* out);
  /// Under a Guard. An operation with a peer has failed. If another endpoint serves the row's
  /// service now, or none does, the next use looks it up again. @param peer context of tagged
  /// messages.
  void check_again(tag::Address peer);
  /// Under a Guard. Like fi_av_lookup().
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
      return domain_.has_sockets() ? number_of_slow(source) : FI_ADDR_NOTAVAIL;
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
  struct Row {
    Name name{};                  // as inserted, or the name of a service's endpoint
    tag::Address gone = kNoPeer;  // former address of a peer that is gone: another process was
                                  // inserted with its destID
    in_addr ip{};                 // with FI_SOCKADDR_IN, as inserted
    uint16_t port = 0;            // 0: not inserted as FI_SOCKADDR_IN
    bool is_told = false;         // the log has reported why this port is not reached
  };

  void hear();
  [[nodiscard]] bool has_row(fi_addr_t address) const;
  [[nodiscard]] bool is_gone(fi_addr_t address) const;
  [[nodiscard]] bool is_place(fi_addr_t address) const;
  [[nodiscard]] size_t address_bytes() const;
  int insert_rows(const void* names, size_t count, fi_addr_t* out, int* errors);
  int insert_with_events(const void* names, size_t count, fi_addr_t* out, void* context);
  [[nodiscard]] int insert_name(const void* bytes);
  [[nodiscard]] int insert_place(const void* bytes);
  [[nodiscard]] int fill_row(size_t row, const Name& name, tag::Address address);
  [[nodiscard]] int find_server(size_t row, Name* name, tag::Address* out);
  static void tell_unreached(Row& place, int rc);
  [[nodiscard]] fi_addr_t number_of_slow(tag::Address source);
  [[nodiscard]] int find_out(const Name& name, tag::Address* out);
  void forget_refusals(tag::Address first);

  std::vector<tag::Address> peers_;  // of each row; kNoPeer: removed, gone, or a port not used yet
  std::vector<Row> rows_;
  std::unordered_map<tag::Address, fi_addr_t> numbers_;
  // Senders in no row, with the process (Link::instance) for which that was found.
  std::unordered_map<tag::Address, uint32_t> strangers_;
  bool has_events_;
  EventQueue* events_ = nullptr;
  Use events_use_;
};

int open_address_vector(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* user_context);

}  // namespace rio::ofi
