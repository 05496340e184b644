# SPDX-License-Identifier: BSD-3-Clause
"""Training: mini-batches of data, and a loop that trains a network with them.

In: arrays, lists and data sets; a network, a loss and options. Out: labelled arrays of some observations; the network
after training, its history, checkpoints.
May import: nn/ and below.
"""
