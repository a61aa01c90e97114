"""What training libraries print, byte for byte, without the middle of long outputs."""

from __future__ import annotations

#: XGBoost 3.2: ``train`` with two evaluation sets, then ``cv``.
XGBOOST = (
    b"[0]\ttrain-logloss:0.47496\ttrain-auc:0.99698\teval-logloss:0.49474\teval-auc:0.95653\n"
    b"[1]\ttrain-logloss:0.34523\ttrain-auc:0.99791\teval-logloss:0.38029\teval-auc:0.95873\n"
    b"[2]\ttrain-logloss:0.26263\ttrain-auc:0.99911\teval-logloss:0.31312\teval-auc:0.95693\n"
    b"[3]\ttrain-logloss:0.20514\ttrain-auc:0.99942\teval-logloss:0.26610\teval-auc:0.95713\n"
    b"[0]\ttrain-logloss:0.48835+0.00252\ttest-logloss:0.51606+0.01225\n"
    b"[1]\ttrain-logloss:0.36389+0.00244\ttest-logloss:0.40386+0.00661\n"
    b"[2]\ttrain-logloss:0.27851+0.00270\ttest-logloss:0.32880+0.00411\n"
)

#: LightGBM 4.7: ``train`` with two validation sets, ``cv``, and ``train`` with early stopping.
LIGHTGBM = (
    b"[LightGBM] [Info] Number of positive: 150, number of negative: 150\n"
    b"[LightGBM] [Info] Auto-choosing col-wise multi-threading, the overhead of testing was 0."
    b"000030 seconds.\n"
    b"You can set `force_col_wise=true` to remove the overhead.\n"
    b"[LightGBM] [Info] Total Bins 808\n"
    b"[LightGBM] [Info] Number of data points in the train set: 300, number of used features: "
    b"8\n"
    b"[LightGBM] [Info] [binary:BoostFromScore]: pavg=0.500000 -> initscore=0.000000\n"
    b"[LightGBM] [Warning] No further splits with positive gain, best gain: -inf\n"
    b"[1]\ttrain's binary_logloss: 0.616442\ttrain's auc: 0.984289\tvalid's binary_logloss: 0."
    b"619164\tvalid's auc: 0.954327\n"
    b"[LightGBM] [Warning] No further splits with positive gain, best gain: -inf\n"
    b"[2]\ttrain's binary_logloss: 0.553661\ttrain's auc: 0.984289\tvalid's binary_logloss: 0."
    b"55894\tvalid's auc: 0.953125\n"
    b"[LightGBM] [Warning] No further splits with positive gain, best gain: -inf\n"
    b"[3]\ttrain's binary_logloss: 0.502355\ttrain's auc: 0.986911\tvalid's binary_logloss: 0."
    b"511659\tvalid's auc: 0.955128\n"
    b"[LightGBM] [Warning] No further splits with positive gain, best gain: -inf\n"
    b"[4]\ttrain's binary_logloss: 0.45756\ttrain's auc: 0.987822\tvalid's binary_logloss: 0.4"
    b"6996\tvalid's auc: 0.954327\n"
    b"[1]\tvalid's binary_logloss: 0.63133 + 0.00903092\n"
    b"[2]\tvalid's binary_logloss: 0.581406 + 0.0175064\n"
    b"[3]\tvalid's binary_logloss: 0.539353 + 0.0244988\n"
    b"Training until validation scores don't improve for 3 rounds\n"
    b"[10]\tvalid_0's binary_logloss: 0.324268\n"
    b"[20]\tvalid_0's binary_logloss: 0.190642\n"
    b"[30]\tvalid_0's binary_logloss: 0.14244\n"
    b"[40]\tvalid_0's binary_logloss: 0.111123\n"
    b"Did not meet early stopping. Best iteration is:\n"
    b"[40]\tvalid_0's binary_logloss: 0.111123\n"
)

#: transformers 5.24: ``Trainer`` with an evaluation each epoch, ``log_metrics``, and ``print``.
TRANSFORMERS = (
    b"{'loss': '0.6948', 'grad_norm': '0.4167', 'learning_rate': '4.063e-05', 'epoch': '0.5'}"
    b"\n"
    b"{'loss': '0.692', 'grad_norm': '0.41', 'learning_rate': '2.813e-05', 'epoch': '1'}\n"
    b"{'eval_loss': '0.6933', 'eval_accuracy': '0.5', 'eval_runtime': '0.0235', 'eval_samples_"
    b"per_second': '1360', 'eval_steps_per_second': '170', 'epoch': '1'}\n"
    b"{'loss': '0.6921', 'grad_norm': '0.3754', 'learning_rate': '1.563e-05', 'epoch': '1.5'}"
    b"\n"
    b"{'loss': '0.6957', 'grad_norm': '0.7725', 'learning_rate': '3.125e-06', 'epoch': '2'}\n"
    b"{'eval_loss': '0.6933', 'eval_accuracy': '0.5', 'eval_runtime': '0.0129', 'eval_samples_"
    b"per_second': '2475', 'eval_steps_per_second': '309.3', 'epoch': '2'}\n"
    b"{'train_runtime': '0.6716', 'train_samples_per_second': '95.3', 'train_steps_per_second'"
    b": '23.82', 'train_loss': '0.6937', 'epoch': '2'}\n"
    b"***** train metrics *****\n"
    b"  epoch                    =        2.0\n"
    b"  total_flos               =        0GF\n"
    b"  train_loss               =     0.6937\n"
    b"  train_runtime            = 0:00:00.67\n"
    b"  train_samples_per_second =     95.302\n"
    b"  train_steps_per_second   =     23.825\n"
    b"{'train_runtime': 0.6716, 'train_samples_per_second': 95.302, 'train_steps_per_second': "
    b"23.825, 'total_flos': 6248448.0, 'train_loss': 0.6936590373516083, 'epoch': 2.0}\n"
)

#: The same with a learning rate of 1e30.
TRANSFORMERS_NAN = (
    b"{'loss': '0.5202', 'grad_norm': 'nan', 'learning_rate': '9.375e+29', 'epoch': '0.25'}\n"
    b"{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '8.125e+29', 'epoch': '0.5'}\n"
    b"{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '6.875e+29', 'epoch': '0.75'}\n"
)

#: Lightning 2.6: tqdm's bar, before it that of the validation.
LIGHTNING = (
    "\r"
    "Validation DataLoader 0: 100%|██████████| 8/8 [00:00<00:00, 1210.13it/s]\x1b[A\n"
    "\r"
    "                                                                        \x1b[A\r"
    "Epoch 2: 100%|██████████| 16/16 [00:00<00:00, 313.00it/s, v_num=0, train_loss=1.680, tra"
    "in/acc=0.400, val_loss=0.965]\r"
    "Epoch 2: 100%|██████████| 16/16 [00:00<00:00, 311.96it/s, v_num=0, train_loss=1.680, tra"
    "in/acc=0.400, val_loss=0.965]\r"
    "Epoch 2: 100%|██████████| 16/16 [00:00<00:00, 299.26it/s, v_num=0, train_loss=1.680, tra"
    "in/acc=0.400, val_loss=0.965]\n"
).encode()

#: The same with a learning rate of 1e25.
LIGHTNING_NAN = (
    "\r"
    "Epoch 2: 100%|██████████| 16/16 [00:00<00:00, 28.65it/s, v_num=0, train_loss=nan.0, trai"
    "n/acc=0.400, val_loss=nan.0]\n"
).encode()

#: Lightning 2.6: the bar of rich.
LIGHTNING_RICH = (
    "Epoch 2/2  ━━━━━━━━━━━━━━━━ 16/16 0:00:00 • 0:00:00 418.74it/s v_num: 0.000     \n"
    "                                                               train_loss: 1.676\n"
    "                                                               train/acc: 0.400 \n"
    "                                                               val_loss: 0.965  \n"
).encode()

#: Accelerate 1.15: ``accelerator.print`` of pairs and of JSON.
ACCELERATE = (
    b'epoch 0: loss=10.9357\nepoch 1: loss=7.5710\n{"epoch": 1, "loss": 7.570980548858643}\n'
)

#: Accelerate's tqdm, and its logger before the bar has ended its line.
ACCELERATE_LOG = (
    "\r"
    "100%|██████████| 20/20 [00:00<00:00, 1185.94it/s, lr=0.01, step_loss=7.57]2026-11-29 08:"
    "48:02,489 - INFO - __main__ - [RANK 0] epoch 1: {'accuracy': 0.5, 'f1': 0.3}\n"
).encode()

#: tqdm 4.70: ``set_postfix`` of three bars, the last without a total.
TQDM = (
    "\r"
    "Epoch 1/1: 100%|██████████| 30/30 [00:00<00:00, 48.40it/s, acc=0.5, loss=0.0333, lr=0.00"
    "01, mem=3GB, n=29, note=x]\r"
    "Epoch 1/1: 100%|██████████| 30/30 [00:00<00:00, 48.40it/s, acc=0.5, loss=0.0333, lr=0.00"
    "01, mem=3GB, n=29, note=x]\n"
    "\r"
    "100%|██████████| 20.0/20.0 [00:00<00:00, 93.9B/s, val/loss=2.5, top-1=0.9]\r"
    "100%|██████████| 20.0/20.0 [00:00<00:00, 93.6B/s, val/loss=2.5, top-1=0.9]\n"
    "\r"
    "open: 20it [00:00, 96.69it/s, loss=nan]\r"
    "open: 20it [00:00, 96.57it/s, loss=nan]\n"
).encode()

#: tqdm: ``set_description``.
TQDM_DESCRIPTION = (
    "\r"
    "loss: 0.571:  80%|████████  | 4/5 [00:00<00:00, 19.70it/s]     \r"
    "Train loss 0.571:  80%|████████  | 4/5 [00:00<00:00, 19.70it/s]\r"
    "Train loss 0.571: 100%|██████████| 5/5 [00:00<00:00, 19.73it/s]\n"
).encode()
