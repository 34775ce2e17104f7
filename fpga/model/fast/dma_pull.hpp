/// @file
/// Reads and writes of many packets between processes, as kLongRequests: the bytes are copied once,
/// directly between the memories of both. A request that a window, a fault or a hole in memory
/// makes special goes in packets instead.
#pragma once

#include <array>
#include <optional>

#include "fpga/model/core/dma_engine.hpp"
#include "fpga/model/core/responder.hpp"
#include "fpga/model/core/target_engine.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class DmaPull {
 public:
  DmaPull(Core& core, Transactions& transactions, Responder& responder, DmaEngine& dma,
          TargetEngine& target)
      : core_(core),
        transactions_(transactions),
        responder_(responder),
        dma_(dma),
        target_(target) {}

  /// Take a kLongRequest. The bytes of a write are pulled in end_pulls(), together with those of
  /// the next ones; until then the frame must not be overwritten, but may be popped. @param puller
  /// null: a write is refused. @param in_packets refuse it in any case. @return false: no more now;
  /// leave the frame in the ring.
  [[nodiscard]] bool on_request(Puller* puller, const InFrame& frame, bool in_packets);
  /// Take the answer to a kLongRequest, and end the transaction. The bytes of a read are pulled as
  /// those of a write.
  void on_response(Puller* puller, Flow& flow, Transaction& transaction, const InFrame& response);

  /// DmaEngine::progress(), and read what is leased.
  void progress(bool may_read);

  /// Whether end_pulls() must be called before a frame of another kind is handled, or frames are
  /// released.
  [[nodiscard]] bool pulling() const { return count_ != 0; }
  /// Whether end_turn() must be called before another answer to a kLongRequest is handled.
  [[nodiscard]] bool is_full() const { return count_ == kPiecesMax || bytes_ >= kTurnBytes; }
  /// @param puller that of the frames.
  void end_pulls(Puller* puller);
  /// Whether anything was added since the last end_turn(), which must then be called before frames
  /// are released.
  [[nodiscard]] bool has_turn() const { return bytes_ != 0; }
  /// End a turn, in which at most so many bytes are pulled that it takes some ten microseconds.
  /// @param puller that of the frames.
  void end_turn(Puller* puller) {
    end_pulls(puller);
    bytes_ = 0;
  }

 private:
  /// Bytes after which a turn takes no other request: it pulls fewer than kLongBytesMax more.
  static constexpr uint32_t kTurnBytes = 512 * 1024;
  static constexpr uint32_t kPiecesMax = 16;

  /// Bytes to be pulled: those of a partner's write, or of a read of this card's.
  struct Pull {
    InFrame frame;            // of the write
    Flow* flow;               // of the read; null: a write
    Transaction transaction;  // of the read
    uint64_t lease;           // number of the lease by which it reads
    bool is_asked;            // whether the read asked, so that the partner has counted it
  };

  void add(const Pull& pull, const PullPiece& piece);
  [[nodiscard]] bool answer_read(const InFrame& frame, const PullPart& part,
                                 const TargetEngine::Place& place);
  void end_read(const Pull& pull, const Puller& puller, uint64_t pulled_bytes);
  void answer(const InFrame& frame, bool is_done, uint32_t length);
  /// End a read or write. @param status nullopt: nothing was done, it goes in packets.
  void end(const Transaction& transaction, std::optional<regs::Status> status);

  Core& core_;
  Transactions& transactions_;
  Responder& responder_;
  DmaEngine& dma_;
  TargetEngine& target_;
  uint32_t count_ = 0;  // entries of pulls_ and pieces_ in use
  uint32_t bytes_ = 0;  // of all that were in use in this turn
  std::array<Pull, kPiecesMax> pulls_;
  std::array<PullPiece, kPiecesMax> pieces_;
};

}  // namespace rio::model
