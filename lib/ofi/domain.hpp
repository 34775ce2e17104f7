/// @file
/// fi_domain(): a queue pair of a card.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "lib/job/process.hpp"
#include "lib/msg/message_port.hpp"
#include "lib/msg/waiting.hpp"
#include "lib/ofi/fid.hpp"
#include "lib/ofi/memory.hpp"
#include "lib/ofi/name.hpp"
#include "lib/ofi/provider.hpp"

namespace rio::ofi {

class Attendant;
class AddressVector;
class CompletionQueue;
class FiEndpoint;

/// Thread rule of all objects of a domain: as the info asked for, FI_THREAD_DOMAIN or any; then
/// each call holds the port's Guard.
class Domain : public fid_domain, public Used {
 public:
  using Fid = fid_domain;

  /// fi_domain(), but the caller sets fid_domain::ops, which opens objects in it. Any thread.
  /// @param out the user's, until fi_close(). @return 0; -FI_EINVAL: a parameter makes no sense; as
  /// msg::MessagePort::open() or Attendant::start().
  [[nodiscard]] static int open(fid_fabric* fabric, fi_info* info, fid_domain** out,
                                void* user_context);
  /// Like open(), but on a port that is open already. @param info its card only names the fabric.
  /// @return 0, or as Attendant::start().
  [[nodiscard]] static int open_on(std::unique_ptr<msg::MessagePort> port, fid_fabric* fabric,
                                   const fi_info& info, const Params& params, fid_domain** out,
                                   void* user_context);
  ~Domain();

  [[nodiscard]] msg::MessagePort& port() { return process_.port(); }
  /// Messages of up to this many bytes are copied; 0: the port's profile decides.
  [[nodiscard]] uint64_t border() const { return border_; }
  [[nodiscard]] Regions& regions() { return regions_; }
  /// Reads and writes of more bytes go by messages; or job::kRmaBorderOfPath.
  [[nodiscard]] uint64_t rma_border() const { return rma_border_; }
  [[nodiscard]] uint16_t fabric() const { return process_.fabric(); }
  /// The name of an endpoint of this domain. @return false: the card's address is too long for it.
  [[nodiscard]] bool make_name(uint32_t endpoint, Name* out) const {
    return process_.make_name(endpoint, out);
  }
  /// Under a Guard. Find the destID to which messages for a name go. Logged.
  /// @return 0, -EADDRINUSE: the peer has our destID; as msg::MessagePort::reach().
  [[nodiscard]] int reach(const Name& name, uint32_t* dest_id) {
    return process_.reach(name, dest_id);
  }
  /// Whether its addresses are FI_SOCKADDR_IN.
  [[nodiscard]] bool has_sockets() const { return has_sockets_; }

  /// Hot. Under a Guard. Make progress with all endpoints, in a user's call.
  void progress() {
    looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    work();
  }
  /// Hot. Under a Guard. End reads and writes that the cards have done, without other progress; a
  /// user's call that finds a completion then makes none. One call in kReaps does nothing: a user
  /// whose reads always end at once must serve its peers, too.
  void reap_transfers();
  /// Hot. Under a Guard. Make progress outside of a user's call.
  void work();
  /// How often the user has made progress. Any thread.
  [[nodiscard]] uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  /// Under a Guard. A number for a question to a peer, unique in this domain, so that an answer
  /// that arrives after its endpoint has closed fits no other question.
  [[nodiscard]] uint32_t next_question() { return next_question_++; }

  /// Under a Guard. Register an endpoint. A closed endpoint's number is reused as late as possible,
  /// since peers may still have its name. @param wanted its number; negative: any. @return its
  /// number; -EADDRINUSE: taken; -ENOSPC: all are in use; logged.
  [[nodiscard]] int add(FiEndpoint& endpoint, int wanted);
  void remove(uint32_t number) { endpoints_[number] = nullptr; }

  /// Under a Guard. Register or remove a completion queue, which the domain tells of vectors that
  /// close.
  void add(CompletionQueue& queue) { queues_.push_back(&queue); }
  void remove(CompletionQueue& queue) { std::erase(queues_, &queue); }
  /// Under a Guard. Register or remove an address vector; completion queues forget one that is
  /// removed.
  void add(AddressVector& av) { vectors_.push_back(&av); }
  void remove(const AddressVector& av);

  /// Under a Guard. Note the owner of a name that is inserted into an address vector. Of several
  /// processes with one destID, the one that was inserted last has it; the others are gone.
  /// @param owner as in the name. @return false: this one is gone.
  [[nodiscard]] bool take_place(uint32_t owner, uint32_t dest_id);

 private:
  Domain(Used& fabric, const fi_info& info, const Params& params,
         std::unique_ptr<msg::MessagePort> port, void* user_context);

  static constexpr uint32_t kReaps = 4;

  Use use_;  // of the fabric
  job::Process process_;
  Regions regions_;
  const uint64_t border_;
  const uint64_t rma_border_;
  const bool has_sockets_;
  uint32_t endpoints_end_ = 0;
  uint32_t next_number_ = 0;  // where the search for a free one begins
  uint32_t next_question_;
  uint32_t reaps_ = 0;
  std::array<FiEndpoint*, kEndpoints> endpoints_{};
  std::vector<CompletionQueue*> queues_;
  std::vector<AddressVector*> vectors_;
  std::unordered_map<uint32_t, uint32_t>
      owners_;  // by destID: Name::owner of the name inserted last
  std::atomic<uint64_t> looks_ = 0;
  std::unique_ptr<Attendant> attendant_;
};

}  // namespace rio::ofi
