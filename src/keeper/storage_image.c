/* Images: the trees that boxes lie on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "keeper/storage_private.h"
#include "kernel/btrfs.h"
#include "wire/keeper.h"

#define IMAGE_MAX_BYTES (64ull * 1024 * 1024 * 1024) /* one image; keeps a bomb off the pool */

int storage_image(struct storage *st, const char *tree, int *ret_fd, struct err *err)
{
    bool none = strcmp(tree, KEEPER_IMAGE_NONE) == 0;
    int fd = openat(none ? st->empty : st->images, none ? "." : tree,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_fail_as(err, errno, FAIL_IMAGE_NOT_FOUND,
                           "image tree '%.12s' is not stored here", tree);
    *ret_fd = fd;
    return 0;
}

static int make_tree(struct storage *st, const char *part, const char *parent, struct err *err)
{
    if (!*parent)
        return btrfs_subvol_create(st->images, part, err);
    _cleanup_fd_ int fd = -1;
    int r = storage_image(st, parent, &fd, err);
    return r < 0 ? r : btrfs_subvol_snapshot(st->images, part, fd, false, err);
}

int storage_image_begin(struct storage *st, const char *tree, const char *parent, int *ret_fd,
                        struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(tree, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", tree);
    r = make_tree(st, part, parent, err);
    if (r < 0)
        return r;
    int fd = openat(st->images, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    if (st->quota)
        (void)btrfs_quota_limit(fd, IMAGE_MAX_BYTES, NULL);
    *ret_fd = fd;
    return 0;
}

int storage_image_commit(struct storage *st, const char *tree, struct err *err)
{
    char part[STORAGE_NAME_SIZE];
    int r = storage_part_name(tree, part);
    if (r < 0)
        return err_set(err, -r, "'%s' is too long", tree);
    _cleanup_fd_ int fd = openat(st->images, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot open '%s'", part);
    /* An image that was acknowledged is there after a power cut. */
    if (syncfs(fd) < 0)
        return err_set(err, errno, "cannot write the image out");
    if (renameat2(st->images, part, st->images, tree, RENAME_NOREPLACE) < 0)
        return err_set(err, errno, "cannot name image tree '%s'", tree);
    return btrfs_subvol_set_readonly(fd, true, err);
}

void storage_image_abort(struct storage *st, const char *tree)
{
    char part[STORAGE_NAME_SIZE];
    if (storage_part_name(tree, part) == 0)
        (void)storage_move_to_trash(st, st->images, part, NULL);
}

int storage_image_trash(struct storage *st, const char *tree, struct err *err)
{
    /* What is read-only cannot be moved to another directory: that changes its "..". */
    _cleanup_fd_ int fd = openat(st->images, tree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? 0 : btrfs_subvol_set_readonly(fd, false, err);
    return r < 0 ? r : storage_move_to_trash(st, st->images, tree, err);
}
