#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/coll_tags.h>
#include <opal/util/output.h>
#include "lib/ompi/coll_rio.h"

enum {
  kRanksAtOnce = kMtlRioSwapsMost + 1, /* of a communicator in which each rank meets all others */
  kPiecesMost = 1 << 20,               /* bytes of a vector that they reduce in pieces */
  kDoublingMost = RIO_MTL_COPIED_MOST, /* of one that more than two ranks exchange, in rounds */
  kShowingRanks = 16,     /* most of a communicator whose ranks show each other their vectors */
  kShownLater = 8,        /* reductions by messages, before a communicator takes the trouble */
  kAtOnceMost = 16 << 10, /* of a message that need not be asked for, by default */
  kPairMost = 128 << 10,  /* of a vector that two ranks exchange, whatever it costs */
};

/* A vector to be reduced. All ranks have the same but for `own` and `result`. */
struct vector {
  const uint8_t* own;
  uint8_t* result; /* where the reduced one goes; may be `own` */
  int count;
  size_t element_bytes;
  struct ompi_datatype_t* type;
  struct ompi_op_t* op;
  ompi_communicator_t* comm;
};

static inline size_t bytes_of(const struct vector* vector) {
  return vector->element_bytes * (size_t)vector->count;
}

/* Whether an operation is one of MPI's on single numbers, which all commute. */
static bool is_plain_op(MPI_Op op) {
  return op == MPI_SUM || op == MPI_MAX || op == MPI_MIN || op == MPI_PROD || op == MPI_LAND ||
         op == MPI_LOR || op == MPI_LXOR || op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
}

/* How the ranks of a communicator reduce a vector. */
enum Way { kWayBefore, kWayDoubling, kWayPieces };

/* Two ranks exchange their vectors, which is one exchange; in pieces it is two, of half the bytes.
 * @param bytes at most kPiecesMost. */
static enum Way way_of_two(size_t bytes) {
  const bool halves_spare_a_question = bytes > kDoublingMost && bytes <= 2 * kAtOnceMost;
  return halves_spare_a_question || bytes > kPairMost ? kWayPieces : kWayDoubling;
}

/* Whether the vector is one of those that this component reduces, as far as its elements go. */
static bool is_plain(const struct vector* vector) {
  return is_plain_op(vector->op) && ompi_datatype_is_predefined(vector->type) &&
         ompi_datatype_is_contiguous_memory_layout(vector->type, vector->count);
}

/* All ranks have the same arguments, so they find the same. */
static enum Way way_of(const struct vector* vector) {
  const size_t bytes = bytes_of(vector);
  const int ranks = ompi_comm_size(vector->comm);
  if (bytes == 0 || bytes > kPiecesMost || !is_plain(vector)) {
    return kWayBefore;
  }
  if (ranks == 2) {
    return way_of_two(bytes);
  }
  if (bytes <= kDoublingMost && (ranks & (ranks - 1)) == 0) {
    return kWayDoubling;
  }
  const bool spares_questions = bytes <= (size_t)ranks * kAtOnceMost;
  return bytes > kDoublingMost && ranks <= kRanksAtOnce && spares_questions ? kWayPieces
                                                                            : kWayBefore;
}

/* Tells the user once of a failure at another rank. @param rc 0, or -errno of an exchange. @return
 * MPI's error for it. */
static int mpi_error(coll_rio_module_t* module, int rc) {
  switch (rc) {
    case 0:
      return MPI_SUCCESS;
    case -ECONNRESET:
    case -EHOSTUNREACH:
    case -ETIMEDOUT:
      return COLL_RIO_ERR_FAILED;
    case MTL_RIO_FAILED_BEFORE:
      if (!module->has_told_reduction) {
        module->has_told_reduction = true;
        opal_output(0, "coll:rio: MPI_Allreduce of communicator %s has failed at another rank",
                    module->comm->c_name);
      }
      return MPI_ERR_OTHER;
    case -EMSGSIZE:
      return MPI_ERR_TRUNCATE;
    case -ENOMEM:
    case -ENOBUFS:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_INTERN;
  }
}

static int exchange(const struct vector* vector, const struct mtl_rio_swap* swaps, int count) {
  return mca_coll_rio_component.exchange(vector->comm, MCA_COLL_BASE_TAG_ALLREDUCE, swaps, count);
}

/* second = first op second. */
static inline void reduce_onto(const struct vector* vector, const void* first, void* second,
                               int count) {
  const mca_coll_base_comm_coll_t* const calls = vector->comm->c_coll;
  (void)calls->coll_reduce_local(first, second, count, vector->type, vector->op,
                                 calls->coll_reduce_local_module);
}

/* into = first op second. @param into neither of both. */
static inline void reduce(const struct vector* vector, const uint8_t* first, const uint8_t* second,
                          uint8_t* into, int count) {
  enum { kBlockBytes = 8192 }; /* stays in the cache from the copy to the reduction */
  const int block = kBlockBytes / (int)vector->element_bytes;
  for (int at = 0; at < count; at += block) {
    const int elements = count - at < block ? count - at : block;
    const size_t offset = (size_t)at * vector->element_bytes;
    memcpy(into + offset, second + offset, (size_t)elements * vector->element_bytes);
    reduce_onto(vector, first + offset, into + offset, elements);
  }
}

/* Reduces the parts of all ranks in an order that is the same everywhere, so that all ranks have
 * the same bits. @param parts by rank; two at the least. @param into none of them. */
static void fold(const struct vector* vector, const uint8_t* const* parts, int ranks, uint8_t* into,
                 int count) {
  reduce(vector, parts[ranks - 2], parts[ranks - 1], into, count);
  for (int rank = ranks - 3; rank >= 0; --rank) {
    reduce_onto(vector, parts[rank], into, count);
  }
}

/* The first element of a rank's piece. @param rank may be the number of ranks. */
static inline int piece_at(const struct vector* vector, int rank, int ranks) {
  return (int)((int64_t)vector->count * rank / ranks);
}

/* Bytes up to a rank's piece. */
static inline size_t piece_offset(const struct vector* vector, int rank, int ranks) {
  return (size_t)piece_at(vector, rank, ranks) * vector->element_bytes;
}

static inline size_t piece_bytes(const struct vector* vector, int rank, int ranks) {
  return piece_offset(vector, rank + 1, ranks) - piece_offset(vector, rank, ranks);
}

/* Each rank reduces a piece of the vector, which it gets from all others, and sends the result to
 * all others, so all wait twice. @param room for a vector and an element of each rank. NULL: there
 * is no memory, so all ranks are to fail. */
static int reduce_pieces(const struct vector* vector, uint8_t* room) {
  const int rank = ompi_comm_rank(vector->comm);
  const int ranks = ompi_comm_size(vector->comm);
  const size_t own_bytes = piece_bytes(vector, rank, ranks);
  uint8_t* const own_result = vector->result + piece_offset(vector, rank, ranks);
  struct mtl_rio_swap swaps[kMtlRioSwapsMost] = {{0}};
  const uint8_t* parts[kRanksAtOnce];
  for (int i = 1; i < ranks; ++i) {
    const int peer = (rank + i) % ranks;
    uint8_t* const in = room != NULL ? room + (size_t)peer * own_bytes : own_result;
    parts[peer] = in;
    swaps[i - 1] =
        (struct mtl_rio_swap){peer, vector->own + piece_offset(vector, peer, ranks),
                              piece_bytes(vector, peer, ranks), in, room != NULL ? own_bytes : 0};
  }
  const int rc_pieces = exchange(vector, swaps, ranks - 1);
  const int failed = room != NULL ? rc_pieces : -ENOMEM;
  if (failed == 0) {
    parts[rank] = vector->own + piece_offset(vector, rank, ranks);
    if (parts[rank] == own_result) {
      parts[rank] = memcpy(room + (size_t)rank * own_bytes, own_result, own_bytes);
    }
    fold(vector, parts, ranks, own_result,
         piece_at(vector, rank + 1, ranks) - piece_at(vector, rank, ranks));
  }
  for (int i = 1; i < ranks; ++i) {
    const int peer = (rank + i) % ranks;
    swaps[i - 1] = (struct mtl_rio_swap){peer, own_result, failed == 0 ? own_bytes : 0,
                                         vector->result + piece_offset(vector, peer, ranks),
                                         piece_bytes(vector, peer, ranks)};
  }
  const int rc = exchange(vector, swaps, ranks - 1);
  return failed != 0 ? failed : rc;
}

/* Recursive doubling: after each exchange twice as many ranks have the same sums. The lower rank's
 * operand comes first, so that both ranks of an exchange have the same bits. After a failure a rank
 * takes part in the rounds that are left, without a vector, so that no rank waits for it and all
 * that would have had its sums are told. @param room for a vector. NULL: there is no memory. */
static int reduce_doubling(const struct vector* vector, uint8_t* room) {
  const int rank = ompi_comm_rank(vector->comm);
  const int ranks = ompi_comm_size(vector->comm);
  const size_t bytes = bytes_of(vector);
  const uint8_t* own = vector->own;
  uint8_t* const into = vector->result;
  int failed = room != NULL ? 0 : -ENOMEM;
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int peer = rank ^ distance;
    const struct mtl_rio_swap swap = {peer, own, failed == 0 ? bytes : 0,
                                      room != NULL ? room : into, room != NULL ? bytes : 0};
    const int rc = exchange(vector, &swap, 1);
    failed = failed != 0 ? failed : rc;
    if (failed != 0) {
      continue;
    }
    if (own != into) {
      reduce(vector, rank < peer ? own : room, rank < peer ? room : own, into, vector->count);
      own = into;
    } else if (rank < peer) {
      reduce_onto(vector, own, room, vector->count);
      memcpy(into, room, bytes);
    } else {
      reduce_onto(vector, room, into, vector->count);
    }
  }
  return failed;
}

/* @param bytes of the room that the way needs. */
static int reduce_with_room(const struct vector* vector, enum Way way, size_t bytes) {
  uint8_t* const room = malloc(bytes); /* NULL: this rank lets the others fail, too */
  const int rc = way == kWayPieces ? reduce_pieces(vector, room) : reduce_doubling(vector, room);
  free(room);
  return rc;
}

static int reduce_here(const struct vector* vector, enum Way way) {
  _Alignas(64) uint8_t room[kDoublingMost];
  const size_t bytes = bytes_of(vector);
  if (way == kWayDoubling && bytes <= sizeof(room)) {
    return reduce_doubling(vector, room);
  }
  const size_t ranks = (size_t)ompi_comm_size(vector->comm);
  return reduce_with_room(vector, way, bytes + ranks * vector->element_bytes);
}

/* Whether the ranks show each other the vector in memory. All ranks count the same vectors, so they
 * find the same. @param rc set to an error that ends the reduction. */
static bool is_shown(coll_rio_module_t* module, const struct vector* vector, int* rc) {
  const size_t bytes = bytes_of(vector);
  if (module->never_shows || bytes == 0 || bytes > RIO_FI_BARRIER_SHOWN_MOST ||
      ompi_comm_size(vector->comm) > kShowingRanks || !is_plain(vector)) {
    return false;
  }
  if (module->reductions < kShownLater) {
    ++module->reductions;
    return false;
  }
  if (module->shown_most == 0) {
    *rc = coll_rio_find_shown_most(module);
  }
  return bytes <= module->shown_most;
}

/* Each rank reduces the vectors of all, pair by pair: for numbers of ranks that are powers of two
 * in the order of reduce_doubling(), so that all vectors of a program have the same bits. */
static int reduce_shown(coll_rio_module_t* module, const struct vector* vector) {
  const int ranks = ompi_comm_size(vector->comm);
  const size_t bytes = bytes_of(vector);
  const uint8_t* shown[kShowingRanks];
  const int rc = coll_rio_show(module, vector->own, (uint32_t)bytes, shown);
  if (rc != MPI_SUCCESS) {
    return rc;
  }
  _Alignas(64) uint8_t copies[kShowingRanks][RIO_FI_BARRIER_SHOWN_MOST];
  uint8_t* parts[kShowingRanks];
  for (int rank = 0; rank < ranks; ++rank) {
    parts[rank] = memcpy(copies[rank], shown[rank], bytes);
  }
  for (int distance = 1; distance < ranks; distance *= 2) {
    for (int rank = 0; rank + distance < ranks; rank += 2 * distance) {
      uint8_t* const second = parts[rank + distance];
      reduce_onto(vector, parts[rank], second, vector->count);
      parts[rank] = second;
    }
  }
  memcpy(vector->result, parts[0], bytes);
  return MPI_SUCCESS;
}

int coll_rio_allreduce(const void* send, void* receive, int count, struct ompi_datatype_t* type,
                       struct ompi_op_t* op, ompi_communicator_t* comm,
                       mca_coll_base_module_t* super) {
  coll_rio_module_t* const module = (coll_rio_module_t*)super;
  struct vector vector = {send == MPI_IN_PLACE ? receive : send, receive, count, 0, type, op, comm};
  ompi_datatype_type_size(type, &vector.element_bytes);
  int rc = MPI_SUCCESS;
  if (is_shown(module, &vector, &rc)) {
    return reduce_shown(module, &vector);
  }
  if (rc != MPI_SUCCESS) {
    return rc;
  }
  const enum Way way = way_of(&vector);
  if (way == kWayBefore) {
    return module->allreduce_before(send, receive, count, type, op, comm,
                                    module->allreduce_module_before);
  }
  return mpi_error(module, reduce_here(&vector, way));
}
