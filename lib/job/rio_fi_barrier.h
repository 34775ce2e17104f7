/**
 * @file
 * The barriers that librio-fi.so and mca_mtl_rio.so offer to code in the same process that knows
 * ranks, such as Open MPI's component mca_coll_rio.so. librio-fi.so exports rio_fi_barrier(): find
 * it with dlopen(RTLD_NOLOAD) and dlsym(). mca_mtl_rio.so has the calls in its component
 * (lib/ompi/mtl_rio.h). Each library knows the endpoints that it has opened itself.
 *
 * A group is a list of endpoints that meet in barriers. Each member begins it with the same list,
 * waits until it is ready, and then arrives at one barrier after the other. Nothing blocks. Calls
 * on a group take the lock of its port, so any thread may make them, but only one thread at a
 * time for a group.
 */
#ifndef RIO_FI_BARRIER_H
#define RIO_FI_BARRIER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIO_FI_BARRIER_VERSION 2u     /**< of struct rio_fi_barrier_calls */
#define RIO_FI_BARRIER_NAME_BYTES 64u /**< of an endpoint: fi_getname(), or the modex */

#define RIO_FI_BARRIER_SHOWN_MOST 512u /**< bytes; shown_most() is never above it */

typedef struct rio_fi_group rio_fi_group; /**< a member's part of a group */

struct rio_fi_barrier_calls {
  uint32_t version; /**< RIO_FI_BARRIER_VERSION */
  uint32_t reserved;
  /** Begin to create a group; all its members do.
   *  @param names `ranks` names of RIO_FI_BARRIER_NAME_BYTES bytes in the order of ranks, the same
   *  at all members; name `rank` is of an endpoint of this process. Copied.
   *  @param key tells apart groups of the same members; the same at all members, and
   *  different from the keys of this member's other groups that it has not ended.
   *  @return 0; -EINVAL: a name is none of this library's, of another fabric, or of no endpoint
   *  here; else this process cannot take part, and the others do not know: -EBUSY: a peer takes no
   *  news; -ENOSPC: no destID is left for a member; -EADDRINUSE: a member has ours; -ENOMEM. */
  int (*begin)(const void* names, uint32_t ranks, uint32_t rank, uint64_t key, rio_fi_group** out);
  /** Whether all members have agreed. Makes progress. @return 0: yes; -EAGAIN: not yet; another
   *  error: the group cannot be used, and all members are told. */
  int (*ready)(rio_fi_group* group);
  /** Arrive at the next barrier of a group that is ready, and whose last one has ended.
   *  @param shows `bytes` bytes that shown() gives all members once the barrier has ended. Copied.
   *  All members show as many, at most shown_most(); null if `bytes` is 0.
   *  @return 0; -EMSGSIZE: too many; an error: the group has failed, and ends all later barriers
   *  with it. */
  int (*arrive)(rio_fi_group* group, const void* shows, uint32_t bytes);
  /** Whether the barrier has ended. Makes progress. @return 0: all members have arrived; -EAGAIN:
   * not yet; another error: the group has failed. */
  int (*test)(rio_fi_group* group);
  /** @return most bytes that a member of a group that is ready can show; 0: the members do not meet
   *  in memory. The same at all members. */
  uint32_t (*shown_most)(rio_fi_group* group);
  /** After test() has returned 0. @param rank below the number of members. @param bytes those that
   *  this member has shown. @return what that member has shown, until this one arrives at the next
   *  barrier; null: it has shown fewer or more, or the port was closed. */
  const void* (*shown)(rio_fi_group* group, uint32_t rank, uint32_t bytes);
  /** @return rank of the member that caused the failure; -1: none, or not known. */
  int64_t (*failed_rank)(rio_fi_group* group);
  /** End this member's part. Other members whose barrier it leaves are told. Allowed at any time,
   *  also after the endpoint was closed. */
  void (*end)(rio_fi_group* group);
};

/** The calls, for as long as the library is loaded. Any thread. @param version
 * RIO_FI_BARRIER_VERSION. @return null: the library does not have this version. */
const struct rio_fi_barrier_calls* rio_fi_barrier(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
